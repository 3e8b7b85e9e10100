import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { contractDocument, type ContractDocument } from '#api/contract/document.ts'
import { parseOptions } from '#scripts/command-line.ts'
import { staleFiles } from '#scripts/generate-contract.ts'
import {
  generateClientModule,
  generateOperationsModule,
} from '#scripts/python-client/python-methods.ts'
import { generateTypesModule } from '#scripts/python-client/python-types.ts'

const usage = `Usage: npm run python-client -- [options]

Generates the Python client's types and methods from the contract. Run \`npm run contract\` first.

  --check           writes nothing; exits 1 when the generated files are stale
  --folder <path>   the package (default: api/client/python/memory_vault)
  --help            this text
`

/** The generated modules by name. Deterministic. */
export const generatePythonClient = (document: ContractDocument): Map<string, string> =>
  new Map([
    ['types.py', generateTypesModule(document)],
    ['operations.py', generateOperationsModule(document)],
    ['vault.py', generateClientModule(document, 'sync')],
    ['async_vault.py', generateClientModule(document, 'async')],
  ])

function main(): number {
  const values = parseOptions(usage, {
    check: { type: 'boolean', default: false },
    folder: {
      type: 'string',
      default: join(import.meta.dirname, '../api/client/python/memory_vault'),
    },
  })
  const generated = generatePythonClient(contractDocument)
  const stale = staleFiles(values.folder, generated)
  if (values.check && stale.length > 0) {
    console.error(
      `${stale.join(', ')} no longer say what the contract says: run \`npm run python-client\``,
    )
    return 1
  }
  for (const name of stale) writeFileSync(join(values.folder, name), generated.get(name)!)
  console.log(`python client: ${stale.length > 0 ? `wrote ${stale.join(', ')}` : 'is up to date'}`)
  return 0
}

if (import.meta.main) process.exitCode = main()
