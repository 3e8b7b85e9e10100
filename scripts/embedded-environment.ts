import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { readRunningServices } from '#scripts/services/services.ts'
import { Refusal } from '#shared/core/errors.ts'

type Environment = Record<string, string | undefined>

export type EmbeddedSecrets = { MASTER_KEY: string; KEY_PEPPER: string }

/** Those variables that are not empty: an empty one is as good as none, here as in `readConfig`. */
export const filledVariables = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()))

/** The data folder of the embedded services. */
export const resolveDataDir = (env: Environment): string =>
  resolve(env.DATA_DIR?.trim() || '.vault')

export const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json')

/**
 * The secrets of an embedded installation, created at its first start and stored in its data folder.
 * Without them none of its stored keys can be looked up.
 */
export function loadOrCreateSecrets(dataDir: string): EmbeddedSecrets {
  const file = secretsPath(dataDir)
  if (existsSync(file)) return parseSecrets(file)
  const secrets = {
    MASTER_KEY: randomBytes(32).toString('hex'),
    KEY_PEPPER: randomBytes(32).toString('base64url'),
  }
  writePrivateFile(file, JSON.stringify(secrets))
  return secrets
}

/** @throws Refusal `conflict` for a file that is cut or was changed. */
function parseSecrets(file: string): EmbeddedSecrets {
  try {
    const { MASTER_KEY, KEY_PEPPER } = JSON.parse(
      readFileSync(file, 'utf8'),
    ) as Partial<EmbeddedSecrets>
    if (MASTER_KEY && KEY_PEPPER) return { MASTER_KEY, KEY_PEPPER }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new Refusal(
    'conflict',
    `${file} is damaged: it must hold MASTER_KEY and KEY_PEPPER as JSON`,
    'Put it back from a backup: without it no key is found and nothing sealed can be opened.',
  )
}

/**
 * The environment of the running embedded services, for scripts that use the same databases.
 *
 * @returns undefined when the environment names a database, or no embedded services are running.
 */
export function embeddedEnvironment(env: Environment): Environment | undefined {
  const dataDir = resolveDataDir(env)
  if (env.DATABASE_URL || !existsSync(secretsPath(dataDir))) return undefined
  const services = readRunningServices(dataDir)
  if (!services) return undefined
  const { databaseUrl: DATABASE_URL, mongodbUri: MONGODB_URI } = services
  return { ...loadOrCreateSecrets(dataDir), DATABASE_URL, MONGODB_URI, ...filledVariables(env) }
}
