import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { ContractDocument } from '#api/contract/document.ts'
import { parseOptions } from '#scripts/command-line.ts'
import { buildDocument, type SpecificationPage } from '#scripts/contract/build-document.ts'
import { generateMethods } from '#scripts/contract/client-methods.ts'
import { generateShapes, generateTypes } from '#scripts/contract/generate-types.ts'

const usage = `Usage: npm run contract -- [options]

Generates the contract from its Markdown tables: writes schemas.json, types.ts and shapes.ts
into the folder "generated"; of api/contract also the methods of the TypeScript client.

  --check           writes nothing; exits 1 when the generated files are stale
  --folder <path>   the folder of the tables (default: api/contract)
  --help            this text
`

/** The generated files of a folder of tables, by name. Deterministic. */
export async function generateContract(folder: string): Promise<Map<string, string>> {
  const document = readDocument(folder)
  return new Map([
    ['schemas.json', `${JSON.stringify(document)}\n`],
    ['types.ts', await generateTypes(document)],
    ['shapes.ts', generateShapes(document)],
  ])
}

/**
 * Writes the generated files that differ from those on disk, or only compares with `isCheck`.
 *
 * @param name of the folder in messages
 * @param command that generates them
 * @returns the exit code: 1 when a check finds a stale file
 */
export function settleFiles(
  folder: string,
  generated: ReadonlyMap<string, string>,
  { name, command, isCheck }: { name: string; command: string; isCheck: boolean },
): number {
  const stale = staleFiles(folder, generated)
  if (isCheck && stale.length > 0) {
    console.error(`${stale.join(', ')} differ from the tables: run \`npm run ${command}\``)
    return 1
  }
  mkdirSync(folder, { recursive: true })
  for (const file of stale) writeFileSync(join(folder, file), generated.get(file)!)
  console.log(`${name}: ${stale.length > 0 ? `wrote ${stale.join(', ')}` : 'is up to date'}`)
  return 0
}

/** Names of the generated files that are missing on disk or differ. */
export const staleFiles = (folder: string, generated: ReadonlyMap<string, string>): string[] =>
  [...generated]
    .filter(([name, text]) => readTextIfExists(join(folder, name)) !== text)
    .map(([name]) => name)

const readDocument = (folder: string): ContractDocument => buildDocument(readSpecification(folder))

function readSpecification(folder: string): SpecificationPage[] {
  const names = globSync('*.md', { cwd: folder }).filter(name => name !== 'README.md')
  return names.sort().map(file => ({ file, markdown: readFileSync(join(folder, file), 'utf8') }))
}

function readTextIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

const contractFolder = join(import.meta.dirname, '../api/contract')

async function main(): Promise<number> {
  const values = parseOptions(usage, {
    check: { type: 'boolean', default: false },
    folder: { type: 'string', default: contractFolder },
  })
  const generated = await generateContract(values.folder)
  const name = basename(values.folder)
  const options = { name, command: 'contract', isCheck: values.check }
  const exitCode = settleFiles(join(values.folder, 'generated'), generated, options)
  if (values.folder !== contractFolder) return exitCode
  const methods = new Map([['operations.ts', generateMethods(readDocument(contractFolder))]])
  const client = join(contractFolder, '../client/generated')
  return settleFiles(client, methods, { ...options, name: 'client' }) || exitCode
}

if (import.meta.main) {
  try {
    process.exitCode = await main()
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
