import { join } from 'node:path'
import { version } from '#api/edge/version.ts'
import { parseOptions } from '#scripts/command-line.ts'
import { settleFiles } from '#scripts/generate-contract.ts'
import {
  generateClientModule,
  generateOperationsModule,
} from '#scripts/python-client/python-methods.ts'
import { generateTypesModule } from '#scripts/python-client/python-types.ts'

const usage = `Usage: npm run python-client -- [options]

Generates the Python client's types and methods from the contract. Run \`npm run contract\` first.

  --check           writes nothing; exits 1 when the generated files are stale
  --folder <path>   where they go (default: api/client/python/memory_vault/generated)
  --help            this text
`

/** The generated modules by name. Deterministic. */
export const generatePythonClient = (): Map<string, string> =>
  new Map([
    ['types.py', generateTypesModule()],
    ['operations.py', generateOperationsModule(version)],
    ['async_vault.py', generateClientModule()],
    ['__init__.py', ''],
  ])

function main(): number {
  const folder = join(import.meta.dirname, '../api/client/python/memory_vault/generated')
  const values = parseOptions(usage, {
    check: { type: 'boolean', default: false },
    folder: { type: 'string', default: folder },
  })
  return settleFiles(values.folder, generatePythonClient(), {
    name: 'python client',
    command: 'python-client',
    isCheck: values.check,
  })
}

if (import.meta.main) process.exitCode = main()
