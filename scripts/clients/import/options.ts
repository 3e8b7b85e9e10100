import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { formats } from '#scripts/clients/import/formats.ts'
import {
  resolveConnection,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'
import {
  readSending,
  sendingOptions,
  type SendingOptions,
} from '#scripts/clients/upload/options.ts'

export type ImportOptions = ServiceConnection &
  SendingOptions & {
    /** A file, a folder or a zip archive. */
    path: string
    /** A name of the table of formats. */
    from: string
    dryRun: boolean
  }

/** Read by the service, and no export. */
export const documents = 'files'

const names = [...Object.keys(formats), documents]
const fileOf = (name: string): string =>
  formats[name]?.file ??
  'documents: PDF, DOCX, PPTX, XLSX, HTML, Markdown, mail, CSV, text; a file or a folder'

const help = `Usage: npm run import-file -- --from <product> <export> [options]

Brings the memories of another product into a vault: messages and facts with their times, roles, speakers
and titles. The whole export is read and checked before the first memory is sent. Importing it again adds
nothing; when it is stopped, the same command continues: the position is saved in
<export>.import-state.json and removed at the end; where that cannot be written, it starts again from the
first memory.

  --from <product>     which export it is:
${names.map(name => `                         ${name.padEnd(11)} ${fileOf(name)}`).join('\n')}
  <export>             the file, its folder, or a zip archive of it, of any size, with the archives in them
  --dry-run            reads and reports, and sends nothing
  --session <id>       store in this session instead of the core vault
  --on-conflict <how>  of documents that this service wrote as okf: skip or replace memories that exist
                       (default: skip)
  --embeddings <name>  the vault space (default: that of the service)
  --part-lines <n>     memories sent in one request, 1 to 10,000 (default: 10,000)
  --fresh              start from the first memory, ignoring an earlier run
  --base-url <url>     the service (default: BASE_URL, or the one "npm start" runs on DATA_DIR)
  --key <key>          the Memory Key of the vault (default: MEMORY_KEY, or the first key of that one)
  ${userOptionHelp}
  --json               print the result as JSON
  --help               this text

Exit code: 0 when every memory is in the vault, 1 when some were faulty, 2 for wrong options or an export
that cannot be read, 3 when it was stopped before the end: run it again to continue.
`

/** Reads the options from the arguments, the environment and the credentials of a running `npm start`. */
export function readOptions(): ImportOptions {
  const { values, positionals } = parseCommand(help, {
    from: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    ...sendingOptions,
  })
  const faults: string[] = []
  const { from = '', 'dry-run': dryRun } = values
  // A dry run asks no service.
  const connection = dryRun
    ? { baseUrl: '', key: '' }
    : resolveConnection(values, { env: process.env, faults })
  const sending = readSending(values, faults)
  if (positionals.length !== 1) faults.push('name one export: a file, a folder or a zip archive')
  if (!names.includes(from)) faults.push(`--from must be one of ${names.join(', ')}`)
  if (sending.onConflict === 'replace' && from !== 'okf') {
    faults.push('--on-conflict needs --from okf')
  }
  if (faults.length > 0) exitWithUsage(faults, help)
  return { ...connection, ...sending, path: positionals[0]!, from, dryRun }
}
