import { parseArgs } from 'node:util'
import {
  resolveConnection,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'

type Environment = Record<string, string | undefined>

export type UploadOptions = ServiceConnection & {
  /** A path, or `-` for standard input. */
  file: string
  kind: 'upload' | 'import'
  session: string | undefined
  embeddings: string | undefined
  onConflict: 'skip' | 'replace'
  partLines: number
  /** Ignore the saved state of an earlier run. */
  fresh: boolean
  json: boolean
}

/** The most lines the service accepts in one request. */
export const partLinesMax = 10_000

export const help = `Usage: npm run upload-file -- <file|-> [options]

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

/** What every command takes that sends memories in parts, as `parseArgs` reads it. */
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
  help: { type: 'boolean', default: false },
} as const

/**
 * Reads the options from the arguments, the environment and the credentials of a running `npm start`.
 *
 * @returns the options; `help`; or a list of faults.
 */
export function readOptions(args: string[], env: Environment): UploadOptions | 'help' | string[] {
  let parsed
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: {
        import: { type: 'boolean', default: false },
        ...sendingOptions,
      },
    })
  } catch (error) {
    return [(error as Error).message]
  }
  const { values, positionals } = parsed
  if (values.help) return 'help'

  const problems: string[] = []
  const connection = resolveConnection(values, { env, faults: problems })
  const partLines = Number(values['part-lines'])
  const onConflict = values['on-conflict']
  const faults: [boolean, string][] = [
    [positionals.length !== 1, 'name one file, or - for standard input'],
    [
      !Number.isInteger(partLines) || partLines < 1 || partLines > partLinesMax,
      '--part-lines must be 1 to 10,000',
    ],
    [onConflict !== 'skip' && onConflict !== 'replace', '--on-conflict must be skip or replace'],
    [onConflict === 'replace' && !values.import, '--on-conflict needs --import'],
    [values.import && values.session !== undefined, '--session cannot be used with --import'],
  ]
  for (const [wrong, problem] of faults) if (wrong) problems.push(problem)
  if (problems.length > 0) return problems
  return {
    file: positionals[0]!,
    ...connection,
    kind: values.import ? 'import' : 'upload',
    session: values.session,
    embeddings: values.embeddings,
    onConflict: onConflict as UploadOptions['onConflict'],
    partLines,
    fresh: values.fresh,
    json: values.json,
  }
}
