import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseOptions } from '#scripts/command-line.ts'
import { buildDocument, type SpecificationPage } from '#scripts/contract/build-document.ts'
import { generateShapes, generateTypes } from '#scripts/contract/generate-types.ts'

const usage = `Usage: npm run contract -- [options]

Generates the contract from its Markdown tables: writes schemas.json, types.ts and shapes.ts beside them.

  --check           writes nothing; exits 1 when the generated files are stale
  --folder <path>   the folder of the tables (default: api/contract)
  --help            this text
`

/** The generated files of a folder of tables, by name. Deterministic. */
export async function generateContract(folder: string): Promise<Map<string, string>> {
  const document = buildDocument(readSpecification(folder))
  return new Map([
    ['schemas.json', `${JSON.stringify(document)}\n`],
    ['types.ts', await generateTypes(document)],
    ['shapes.ts', generateShapes(document)],
  ])
}

/** Names of the generated files on disk that differ from `generated`. */
export function staleFiles(folder: string, generated: ReadonlyMap<string, string>): string[] {
  return [...generated]
    .filter(([name, text]) => readTextIfExists(join(folder, name)) !== text)
    .map(([name]) => name)
}

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

async function main(): Promise<number> {
  const values = parseOptions(usage, {
    check: { type: 'boolean', default: false },
    folder: { type: 'string', default: join(import.meta.dirname, '../api/contract') },
  })
  const generated = await generateContract(values.folder)
  const stale = staleFiles(values.folder, generated)
  if (values.check && stale.length > 0) {
    console.error(`${stale.join(', ')} no longer say what the tables say: run \`npm run contract\``)
    return 1
  }
  for (const name of stale) writeFileSync(join(values.folder, name), generated.get(name)!)
  const summary = stale.length > 0 ? `wrote ${stale.join(', ')}` : 'is up to date'
  console.log(`${basename(values.folder)}: ${summary}`)
  return 0
}

if (import.meta.main) {
  try {
    process.exitCode = await main()
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
