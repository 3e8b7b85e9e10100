import { partLinesMax } from '#api/import/send/send-parts.ts'
import { exitWithUsage, parseCommand, type parseOptions } from '#scripts/command-line.ts'
import {
  resolveConnection,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'

/** How memories are sent in parts. */
export type SendingOptions = {
  session: string | undefined
  embeddings: string | undefined
  onConflict: 'skip' | 'replace'
  /** Lines of a request, at most 10,000. */
  partLines: number
  /** Ignore the saved position of an earlier run. */
  fresh: boolean
  json: boolean
}

export type UploadOptions = ServiceConnection &
  SendingOptions & {
    /** A path, or `-` for standard input. */
    file: string
    kind: 'upload' | 'import'
  }

const help = `Usage: npm run upload-file -- <file|-> [options]

Sends a file of JSON lines of any length to a vault, in parts. It may be stopped at any time and started
again: its position is saved in <file>.upload-state.json, which is removed at the end; where that cannot be
written, a run after a stop starts from the first line. Sending a file again adds nothing.

  <file>               one object per line: {"content": …, "role": …, "timestamp": …}; - reads standard
                       input, which cannot be resumed
  --import             the file is an export: restore it, with ids, times and lineage
  --on-conflict <how>  with --import: skip or replace memories that exist (default: skip)
  --session <id>       store in this session instead of the core vault
  --embeddings <name>  the vault space (default: that of the service)
  --part-lines <n>     lines per part, 1 to 10,000 (default: 10,000)
  --fresh              start from the first line, ignoring an earlier run
  --base-url <url>     the service (default: BASE_URL, or the one "npm start" runs on DATA_DIR)
  --key <key>          the Memory Key of the vault (default: MEMORY_KEY, or the first key of that one)
  ${userOptionHelp}
  --json               print the result as JSON
  --help               this text

Exit code: 0 when every line is in the vault, 1 when some were faulty, 2 for wrong options, 3 when it was
stopped before the end: run it again to continue.
`

/** What every command takes that sends memories in parts. */
export const sendingOptions = {
  session: { type: 'string' },
  'on-conflict': { type: 'string', default: 'skip' },
  embeddings: { type: 'string' },
  'part-lines': { type: 'string', default: String(partLinesMax) },
  fresh: { type: 'boolean', default: false },
  'base-url': { type: 'string' },
  key: { type: 'string' },
  user: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

type SendingValues = ReturnType<typeof parseOptions<typeof sendingOptions>>

/** Checks the options of `sendingOptions` but those of the connection. @param faults receives a sentence for each fault */
export function readSending(values: SendingValues, faults: string[]): SendingOptions {
  const { session, embeddings, 'on-conflict': onConflict, fresh, json } = values
  const partLines = Number(values['part-lines'])
  if (!Number.isInteger(partLines) || partLines < 1 || partLines > partLinesMax) {
    faults.push('--part-lines must be 1 to 10,000')
  }
  if (onConflict !== 'skip' && onConflict !== 'replace') {
    faults.push('--on-conflict must be skip or replace')
  }
  return { session, embeddings, onConflict: onConflict as 'skip', partLines, fresh, json }
}

/** Reads the options from the arguments, the environment and the credentials of a running `npm start`. */
export function readOptions(): UploadOptions {
  const { values, positionals } = parseCommand(help, {
    import: { type: 'boolean', default: false },
    ...sendingOptions,
  })
  const faults: string[] = []
  const connection = resolveConnection(values, { env: process.env, faults })
  const sending = readSending(values, faults)
  const isImport = values.import
  if (positionals.length !== 1) faults.push('name one file, or - for standard input')
  if (sending.onConflict === 'replace' && !isImport) faults.push('--on-conflict needs --import')
  if (isImport && sending.session !== undefined) {
    faults.push('--session cannot be used with --import')
  }
  if (faults.length > 0) exitWithUsage(faults, help)
  return { ...connection, ...sending, file: positionals[0]!, kind: isImport ? 'import' : 'upload' }
}
