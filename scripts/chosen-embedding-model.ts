import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SupervisedProgram } from '#scripts/supervise-processes.ts'
import { writePrivateFile } from '#scripts/private-file.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The model of the disk that `npm start` serves. */
export type ChosenModel = {
  name: string
  folder: string
  /** Whether new vaults get it. */
  isDefault: boolean
}

/** The provider under which the service knows it. */
const provider = 'offline'

const fileOf = (dataDir: string): string => join(dataDir, 'embedding-model.json')

/** The model that was chosen; undefined without one. */
export function chosenModel(dataDir: string): ChosenModel | undefined {
  const file = fileOf(dataDir)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ChosenModel) : undefined
}

export function chooseModel(dataDir: string, model: ChosenModel): void {
  mkdirSync(dataDir, { recursive: true })
  writePrivateFile(fileOf(dataDir), JSON.stringify(model))
}

type Environment = Record<string, string | undefined>

/**
 * How a start serves the model of its data folder: the program, and the environment of the others.
 *
 * @returns no program, and the environment as it is, where none was chosen
 * @throws Refusal `conflict` when its folder is gone.
 */
export function serveChosenModel(
  dataDir: string,
  env: Environment,
  port: number,
): { programs: SupervisedProgram[]; env: Environment } {
  const model = chosenModel(dataDir)
  if (!model) return { programs: [], env }
  const { name, folder, isDefault } = model
  if (!existsSync(folder))
    throw new Refusal(
      'conflict',
      `${folder} is gone, which holds the embedding model ${name}`,
      `Fetch it again: npm run embedding-model -- ${name}`,
    )
  const args = [folder, '--name', name, '--port', String(port)]
  return {
    programs: [{ name: 'embedder', program: 'scripts/embedding-server.ts', args, stopsLast: true }],
    env: {
      EMBEDDINGS: isDefault ? `${provider}/${name}` : 'local',
      ...env,
      PROVIDERS: [env.PROVIDERS, provider].filter(Boolean).join(','),
      OFFLINE_BASE_URL: `http://127.0.0.1:${port}/v1`,
    },
  }
}
