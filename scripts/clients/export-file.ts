import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { vaultClient } from '#api/client/client.ts'
import type { ExportLine } from '#api/contract/generated/types.ts'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import {
  toOkfDocument,
  toOkfIndex,
  type OkfDocument,
} from '#scripts/clients/export/okf-document.ts'
import {
  resolveConnection,
  toRefusal,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'
import { Refusal } from '#shared/core/errors.ts'

const help = `Usage: npm run export-file -- --to okf <folder> [options]

Writes a vault, with its sessions and reflections, as a bundle of Open Knowledge Format: a markdown document
with front matter for each memory. The same vault gives the same files, so the folder can be kept in git.
"npm run import-file -- --from okf <folder>" brings it back as it was, vectors aside. To export JSON lines
use GET /v1/memory/export.

  --to okf             the format
  <folder>             a folder that is empty or does not exist
  --base-url <url>     the service (default: BASE_URL, or the one "npm start" runs on DATA_DIR)
  --key <key>          the Memory Key of the vault (default: MEMORY_KEY, or the first key of that one)
  ${userOptionHelp}
  --json               print the result as JSON
  --help               this text

Exit code: 0 when everything is written, 2 for wrong options, 3 when it was stopped before the end:
index.md, which is written last, is missing then.
`

/** A note of progress after so many documents. */
const noteEvery = 10_000

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals } = parseCommand(help, {
    to: { type: 'string' },
    'base-url': { type: 'string' },
    key: { type: 'string' },
    user: { type: 'string' },
    json: { type: 'boolean' },
  })
  const faults: string[] = []
  const connection = resolveConnection(values, { env: process.env, faults })
  const [folder = ''] = positionals
  if (positionals.length !== 1) faults.push('name one folder')
  else if (!isFree(folder)) faults.push(`${folder} is not an empty folder`)
  if (values.to !== 'okf') faults.push('--to must be okf')
  if (faults.length > 0) {
    exitWithUsage(faults, help)
  }
  try {
    const documents = await writeBundle(connection, folder)
    process.stdout.write(
      values.json
        ? `${JSON.stringify({ status: 'complete', documents })}\n`
        : `complete: ${documents.toLocaleString('en')} documents in ${folder}\n`,
    )
    return 0
  } catch (error) {
    const { message, hint, code } = error as Refusal & NodeJS.ErrnoException
    if (!(error instanceof Refusal) && !code) throw error
    process.stderr.write(`${message}\n${hint ? `${hint}\n` : ''}Not complete: delete ${folder}\n`)
    return 3
  }
}

function isFree(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

/** @returns the number of documents. */
async function writeBundle(connection: ServiceConnection, folder: string): Promise<number> {
  const paths = new Map<string, string>()
  // Sources come before what covers them.
  for await (const line of exportLines(connection)) {
    const document = toOkfDocument(line, paths)
    paths.set(line.id, document.path)
    writeDocument(folder, document)
    if (paths.size % noteEvery === 0)
      process.stderr.write(`${paths.size.toLocaleString('en')} documents\n`)
  }
  writeDocument(folder, toOkfIndex(paths.values()))
  return paths.size
}

/** Reads the memories of a vault as they come. @throws Refusal as `toRefusal`, also where the stream breaks off. */
async function* exportLines({
  baseUrl,
  key,
  ...user
}: ServiceConnection): AsyncGenerator<ExportLine> {
  try {
    yield* vaultClient(baseUrl, key, user).lines('GET /v1/memory/export')
  } catch (error) {
    throw toRefusal(error)
  }
}

/** Writes a document that only this user may read. */
function writeDocument(folder: string, { path, text }: OkfDocument): void {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeFileSync(file, text, { mode: 0o600 })
}
