import { setTimeout as delay } from 'node:timers/promises'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { ConfigError, readConfig, type Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import {
  listDeadLetters,
  redriveDeadLetters,
  type DeadLetter,
} from '#shared/storage/queue/queue-admin.ts'
import { readQueueStats, type QueueStats } from '#shared/storage/queue/queue-stats.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { jobNames, type JobName } from '#shared/domain/jobs.ts'

type QueueOptions = {
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

const columnHeadings = [
  'queue',
  'waiting',
  'held',
  'retrying',
  'at work',
  'dead',
  'oldest',
  'longest',
  'held for',
]

/** @returns the exit code: 1 when the command failed, 2 for wrong options or a wrong environment. */
async function main(): Promise<number> {
  const options = readOptions()
  try {
    const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
    const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
    try {
      return await commands[options.command](config, postgres, options)
    } finally {
      await postgres.close()
    }
  } catch (error) {
    if (!(error instanceof ConfigError) && !(error instanceof Refusal)) throw error
    process.stderr.write(`${startupErrorMessage(error, process.env)}\n`)
    return error instanceof ConfigError ? 2 : 1
  }
}

type CommandHandler = (config: Config, postgres: Postgres, options: QueueOptions) => Promise<number>

const commands: Record<QueueOptions['command'], CommandHandler> = {
  show: showCommand,
  dead: deadLettersCommand,
  redrive: redriveCommand,
  cancel: cancelCommand,
}

async function showCommand(
  _config: Config,
  { query }: Postgres,
  options: QueueOptions,
): Promise<number> {
  const { json, watchSeconds } = options
  for (;;) {
    const queues = await readQueueStats(query)
    if (json) process.stdout.write(`${JSON.stringify({ queues })}\n`)
    else {
      const clear = watchSeconds === null || !process.stdout.isTTY ? '' : '\u001B[2J\u001B[H'
      process.stdout.write(clear + formatQueues(queues))
    }
    if (watchSeconds === null) return 0
    await delay(watchSeconds * 1_000)
  }
}

async function deadLettersCommand(
  _config: Config,
  { query }: Postgres,
  options: QueueOptions,
): Promise<number> {
  const { names, limit, json } = options
  const letters = []
  for (const name of names) letters.push(...(await listDeadLetters(query, name, limit)))
  process.stdout.write(json ? `${JSON.stringify({ dead: letters })}\n` : formatDeadLetters(letters))
  return 0
}

async function redriveCommand(
  config: Config,
  _postgres: Postgres,
  options: QueueOptions,
): Promise<number> {
  const { names, ids, limit, json } = options
  const redriven: Partial<Record<JobName, number>> = {}
  for (const name of names) {
    redriven[name] = await redriveDeadLetters(config.databaseUrl, name, {
      limit,
      ...(ids.length > 0 && { ids }),
    })
  }
  const total = Object.values(redriven).reduce((sum, count) => sum + count, 0)
  const output = `${total} ${total === 1 ? 'job' : 'jobs'} put back\n`
  process.stdout.write(json ? `${JSON.stringify({ redriven, total })}\n` : output)
  // A named job that was not found is a failure.
  return ids.length > total ? 1 : 0
}

async function cancelCommand(
  config: Config,
  postgres: Postgres,
  options: QueueOptions,
): Promise<number> {
  const mongo = await openMongo(config.mongodbUri)
  const outcomes = []
  try {
    for (const id of options.ids) {
      outcomes.push({ id, ...(await cancelOrTell({ postgres, mongo }, id)) })
    }
  } finally {
    await mongo.close()
  }
  const lines = outcomes.map(({ id, ...outcome }) => `${id}  ${describeCancellation(outcome)}\n`)
  process.stdout.write(
    options.json ? `${JSON.stringify({ cancelled: outcomes })}\n` : lines.join(''),
  )
  return outcomes.every(({ removed }) => removed > 0) ? 0 : 1
}

type Cancellation = { removed: number; active: number; refused?: string }

/** One that is refused does not keep the others from being cancelled. */
const cancelOrTell = (stores: Stores, id: string): Promise<Cancellation> =>
  cancelAsOperator(stores, id).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    return { removed: 0, active: 0, refused: error.message }
  })

function describeCancellation({ removed, active, refused }: Cancellation): string {
  if (refused !== undefined) return refused
  if (active > 0) return 'is at work and cannot be cancelled'
  if (removed === 0) return 'no job waits or has failed under this id'
  return removed === 1 ? 'cancelled' : `cancelled, ${removed} jobs`
}

/** Reads the options from the arguments. */
function readOptions(): QueueOptions {
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

/** The queues as a table; `!` marks queues with dead letters. */
function formatQueues(queues: readonly QueueStats[]): string {
  const rows = queues.map(queue => [
    queue.dead > 0 ? `${queue.name} !` : queue.name,
    ...[queue.waiting - queue.held, queue.held, queue.retrying, queue.active, queue.dead].map(
      String,
    ),
    formatAge(queue.oldestSeconds),
    formatAge(queue.longestSeconds),
    queue.waitsFor ?? '-',
  ])
  const widths = columnHeadings.map((head, column) =>
    Math.max(head.length, ...rows.map(row => row[column]!.length)),
  )
  const lineOf = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join('  ')
  return [columnHeadings, ...rows].map(row => `${lineOf(row)}\n`).join('')
}

/** Dead letters, one line each. */
function formatDeadLetters(letters: readonly DeadLetter[]): string {
  if (letters.length === 0) return 'No dead letters\n'
  return letters
    .map(({ id, queue, diedAt, tries, error }) => {
      const reason = error.replaceAll(/\s+/g, ' ').slice(0, 200) || 'no reason given'
      return `${id}  ${queue}  ${diedAt.toISOString()}  ${tries} tries  ${reason}\n`
    })
    .join('')
}

function formatAge(seconds: number | null): string {
  if (seconds === null) return '-'
  if (seconds < 120) return `${Math.max(0, seconds)} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} days`
}

process.exitCode = await main()
