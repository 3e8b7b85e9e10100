import { setTimeout as delay } from 'node:timers/promises'
import { faultOf } from '#scripts/command-line.ts'
import { embeddedEnvironment } from '#scripts/embedded.ts'
import { help, readOptions, type Options } from '#scripts/queues/options.ts'
import { deadLines, queueLines } from '#scripts/queues/page.ts'
import { ConfigFault, readConfig, type Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withdrawWork } from '#shared/vault/delete/withdraw.ts'
import { openPostgres, type Postgres } from '#shared/storage/postgres/connect.ts'
import { deadLettersOf, redriveDead, standingOfQueues } from '#shared/storage/queue/queue-admin.ts'
import type { JobName } from '#shared/domain/jobs.ts'

/** @returns the exit code: 1 when it could not be done, 2 for faults of the command line or environment. */
async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(help)
    return 0
  }
  if (Array.isArray(options)) {
    process.stderr.write(faultOf(options, help))
    return 2
  }
  try {
    const config = readConfig(embeddedEnvironment(process.env) ?? process.env)
    const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
    try {
      return await commands[options.command](config, postgres, options)
    } finally {
      await postgres.close()
    }
  } catch (error) {
    if (!(error instanceof ConfigFault) && !(error instanceof Refusal)) throw error
    process.stderr.write(`${error.message}\n`)
    return error instanceof ConfigFault ? 2 : 1
  }
}

type Command = (config: Config, postgres: Postgres, options: Options) => Promise<number>

const commands: Record<Options['command'], Command> = { show, dead, redrive, cancel }

async function show(_config: Config, { query }: Postgres, options: Options): Promise<number> {
  const { json, watchSeconds } = options
  for (;;) {
    const queues = await standingOfQueues(query)
    if (json) process.stdout.write(`${JSON.stringify({ queues })}\n`)
    else {
      const clear = watchSeconds === null || !process.stdout.isTTY ? '' : '\u001B[2J\u001B[H'
      process.stdout.write(clear + queueLines(queues))
    }
    if (watchSeconds === null) return 0
    await delay(watchSeconds * 1_000)
  }
}

async function dead(_config: Config, { query }: Postgres, options: Options): Promise<number> {
  const { names, limit, json } = options
  const letters = []
  for (const name of names) letters.push(...(await deadLettersOf(query, name, limit)))
  process.stdout.write(json ? `${JSON.stringify({ dead: letters })}\n` : deadLines(letters))
  return 0
}

async function redrive(config: Config, _postgres: Postgres, options: Options): Promise<number> {
  const { names, ids, limit, json } = options
  const redriven: Partial<Record<JobName, number>> = {}
  for (const name of names) {
    redriven[name] = await redriveDead(config.databaseUrl, name, {
      limit,
      ...(ids.length > 0 && { ids }),
    })
  }
  const total = Object.values(redriven).reduce((sum, count) => sum + count, 0)
  const told = `${total} ${total === 1 ? 'job' : 'jobs'} put back\n`
  process.stdout.write(json ? `${JSON.stringify({ redriven, total })}\n` : told)
  // Whoever names one wants to know that it was there.
  return ids.length > total ? 1 : 0
}

async function cancel(_config: Config, postgres: Postgres, options: Options): Promise<number> {
  const outcomes = []
  for (const id of options.ids) outcomes.push({ id, ...(await withdrawWork(postgres, id)) })
  const told = outcomes.map(({ id, removed, active }) => `${id}  ${outcomeOf(removed, active)}\n`)
  process.stdout.write(
    options.json ? `${JSON.stringify({ cancelled: outcomes })}\n` : told.join(''),
  )
  return outcomes.every(({ removed }) => removed > 0) ? 0 : 1
}

function outcomeOf(removed: number, active: number): string {
  if (active > 0) return 'is at work and cannot be cancelled'
  if (removed === 0) return 'no job waits or has failed under this id'
  return removed === 1 ? 'cancelled' : `cancelled, ${removed} jobs`
}

process.exitCode = await main()
