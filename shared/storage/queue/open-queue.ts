import { PgBoss, systemClock } from 'pg-boss'
import type { Log } from '#shared/core/log.ts'
import type { Pooler } from '#shared/storage/postgres/pooler.ts'
import { poolSettings } from '#shared/storage/postgres/session.ts'
import { prepareFetches } from '#shared/storage/queue/boss-database.ts'
import { createIdleBoss, pgBossSchema } from '#shared/storage/queue/boss.ts'
import type { QueuePace } from '#shared/storage/queue/due-queues.ts'
import { Queue } from '#shared/storage/queue/queue.ts'

/** For processes that only send jobs. */
export const openQueueSender = (databaseUrl: string, log: Log): Promise<Queue> =>
  Queue.open(createIdleBoss(databaseUrl), log)

/**
 * For worker processes: woken by NOTIFY, where it works; while jobs run, dead workers are looked for every 2 s.
 */
export async function openQueueWorker(
  databaseUrl: string,
  log: Log,
  { pooler, pace }: { pooler: Pooler; pace?: QueuePace | undefined },
): Promise<Queue> {
  const boss = new PgBoss({
    ...poolSettings(databaseUrl),
    schema: pgBossSchema,
    max: 10,
    migrate: false,
    createSchema: false,
    useListenNotify: pooler !== 'transaction',
    clock: createSteadyClock(),
    // In addition to the passes of `Supervisor`.
    superviseIntervalSeconds: 60,
    monitorIntervalSeconds: 2,
    // By default finished jobs, which hold content, are deleted once a day.
    maintenanceIntervalSeconds: 60,
    // No job waits for others: the highest interval.
    flowIntervalSeconds: 3_600,
    persistWarnings: true,
  })
  if (pooler !== 'transaction') prepareFetches(boss)
  const queue = await Queue.open(boss, log, pace)
  void countJobs(boss, log)
  return queue
}

/**
 * Has Postgres count the jobs, for its plans: those that waited for a worker have often not been counted yet.
 * Without, each fetch sorts all that wait (20,000 jobs: 48 ms a fetch of 50; with, 2 ms).
 */
async function countJobs(boss: PgBoss, log: Log): Promise<void> {
  try {
    await boss.getDb().executeSql(`analyze ${pgBossSchema}.job (name, state, priority)`)
  } catch (error) {
    // It only costs time.
    log.warn({ err: error }, 'queue.error')
  }
}

/**
 * Time for pg-boss that never goes back. Its timers wait until a time of the wall clock: when that is set back by
 * an hour, dead workers would be looked for an hour later. Jumps ahead are followed, as after a suspension of the
 * machine, in which the steady clock of the process stands still.
 */
export function createSteadyClock(): typeof systemClock {
  let startedAt = Number.NEGATIVE_INFINITY
  const now = (): number => {
    const steady = performance.now()
    startedAt = Math.max(startedAt, Date.now() - steady)
    return startedAt + steady
  }
  return { ...systemClock, now }
}
