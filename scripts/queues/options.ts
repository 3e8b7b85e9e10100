import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { isUuid } from '#shared/core/ids.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'

export type QueueOptions = {
  command: 'show' | 'dead' | 'redrive' | 'cancel'
  names: readonly JobName[]
  ids: string[]
  limit: number
  json: boolean
  /** Seconds between two outputs; null for a single one. */
  watchSeconds: number | null
}

const help = `Usage: npm exec -- node scripts/queues.ts [command] [options]

Shows and manages the job queues: waiting jobs, their age, and dead letters.

  (no command)          every queue: waiting, retrying, at work, dead, age of the oldest
  dead [queue …]        dead letters: their ids, times and errors
  redrive <queue …>     puts dead letters back, oldest first; "all" for every queue
  cancel <id …>         removes the job of an id, or the jobs of an operation, and cancels that
                        operation; not jobs at work

  --id <id>             redrive only this dead letter; may be repeated
  --limit <n>           at most n dead letters of a queue (default: 1000)
  --watch [seconds]     repeat the table of queues (default: every 2 seconds)
  --json                print JSON, one object per line
  --help                this text

Queues: ${jobNames.join(', ')}

A job may safely run twice. The content of jobs is never shown.
Exit code: 0 when the command succeeded, 1 when it failed, 2 for wrong options.

Reads DATABASE_URL and the rest of the environment as the service does; without DATABASE_URL it works
on the embedded services of DATA_DIR while "npm start" is running.
`

/** Reads the options from the arguments. */
export function readOptions(): QueueOptions {
  const faults: string[] = []
  const args = fillWatchDefault(process.argv.slice(2))
  const definitions = {
    id: { type: 'string', multiple: true },
    limit: { type: 'string', default: '1000' },
    watch: { type: 'string' },
    json: { type: 'boolean', default: false },
  } as const
  const { values, positionals } = parseCommand(help, definitions, true, args)
  const [word = 'show', ...rest] = positionals
  const command = (['dead', 'redrive', 'cancel'] as const).find(known => known === word)
  if (!command && positionals.length > 0) faults.push(`No such command: ${word}`)
  const limit = Number(values.limit)
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000_000)
    faults.push('--limit must be a whole number from 1 to 1000000')
  const watchSeconds = values.watch === undefined ? null : Number(values.watch)
  if (watchSeconds !== null && !(watchSeconds >= 0.1 && watchSeconds <= 3_600))
    faults.push('--watch must be a number of seconds from 0.1 to 3600')
  const ids = command === 'cancel' ? rest : (values.id ?? [])
  for (const id of ids) if (!isUuid(id)) faults.push(`Not an id: ${id}`)
  if (command === 'cancel' && ids.length === 0) faults.push('cancel needs the id of a job')
  const names = command === 'cancel' ? [] : parseQueueNames(command, rest, faults)
  if (faults.length > 0) exitWithUsage(faults, help)
  return { command: command ?? 'show', names, ids, limit, json: values.json, watchSeconds }
}

/** Adds the default to a `--watch` without a number. */
const fillWatchDefault = (args: readonly string[]): string[] =>
  args.map((arg, index) =>
    arg === '--watch' && !/^[\d.]/.test(args[index + 1] ?? '') ? '--watch=2' : arg,
  )

function parseQueueNames(
  command: 'dead' | 'redrive' | undefined,
  requested: readonly string[],
  faults: string[],
): readonly JobName[] {
  if (requested.includes('all') || (command === 'dead' && requested.length === 0)) return jobNames
  if (command === 'redrive' && requested.length === 0)
    faults.push('redrive needs a queue, or "all"')
  for (const name of requested) {
    if (!jobNames.includes(name as JobName)) {
      faults.push(`No such queue: ${name}. Queues: ${jobNames.join(', ')}`)
    }
  }
  return requested as JobName[]
}
