import { parseArgs } from 'node:util'
import { formats } from '#scripts/clients/import/formats.ts'
import {
  resolveConnection,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'
import { partLinesMax, sendingOptions } from '#scripts/clients/upload/options.ts'

type Environment = Record<string, string | undefined>

export type ImportOptions = ServiceConnection & {
  /** A file, a folder or a zip archive. */
  path: string
  /** A name of the table of formats. */
  from: string
  session: string | undefined
  embeddings: string | undefined
  onConflict: 'skip' | 'replace'
  /** Lines of a request, at most 10,000. */
  partLines: number
  dryRun: boolean
  /** Ignore the saved position of an earlier run. */
  fresh: boolean
  json: boolean
}

const names = Object.keys(formats)

export const help = `Usage: npm run import-file -- --from <product> <export> [options]

Brings the memories of another product into a vault: messages and facts with their times, roles, speakers
and titles. The whole export is read and checked before the first memory is sent. Importing it again adds
nothing; when it is stopped, the same command continues: the position is saved in
<export>.import-state.json and removed at the end; where that cannot be written, it starts again from the
first memory.

  --from <product>     which export it is:
${names.map(name => `                         ${name.padEnd(10)} ${formats[name]!.file}`).join('\n')}
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

/**
 * Reads the options from the arguments, the environment and the credentials of a running `npm start`.
 *
 * @returns the options; `help`; or a list of faults.
 */
export function readOptions(args: string[], env: Environment): ImportOptions | 'help' | string[] {
  let parsed
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: {
        from: { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        ...sendingOptions,
      },
    })
  } catch (error) {
    return [(error as Error).message]
  }
  const { values, positionals } = parsed
  if (values.help) return 'help'

  const problems: string[] = []
  const partLines = Number(values['part-lines'])
  const { from = '', 'dry-run': dryRun, 'on-conflict': onConflict } = values
  // A dry run asks no service.
  const connection = dryRun
    ? { baseUrl: '', key: '' }
    : resolveConnection(values, { env, faults: problems })
  const faults: [boolean, string][] = [
    [positionals.length !== 1, 'name one export: a file, a folder or a zip archive'],
    [!Object.hasOwn(formats, from), `--from must be one of ${names.join(', ')}`],
    [
      !Number.isInteger(partLines) || partLines < 1 || partLines > partLinesMax,
      '--part-lines must be 1 to 10,000',
    ],
    [onConflict !== 'skip' && onConflict !== 'replace', '--on-conflict must be skip or replace'],
    [onConflict === 'replace' && from !== 'okf', '--on-conflict needs --from okf'],
  ]
  for (const [wrong, problem] of faults) if (wrong) problems.push(problem)
  if (problems.length > 0) return problems
  return {
    ...connection,
    path: positionals[0]!,
    from,
    session: values.session,
    embeddings: values.embeddings,
    onConflict: onConflict as ImportOptions['onConflict'],
    partLines,
    dryRun,
    fresh: values.fresh,
    json: values.json,
  }
}
