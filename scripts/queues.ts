import { setTimeout as delay } from 'node:timers/promises'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { readOptions, type QueueOptions } from '#scripts/queues/options.ts'
import { formatDeadLetters, formatQueues } from '#scripts/queues/format.ts'
import { ConfigError, readConfig, type Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { startupErrorMessage } from '#shared/core/process-lifecycle.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { listDeadLetters, redriveDeadLetters } from '#shared/storage/queue/queue-admin.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { JobName } from '#shared/domain/jobs.ts'

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

process.exitCode = await main()
