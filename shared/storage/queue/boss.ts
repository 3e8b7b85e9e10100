import { PgBoss } from 'pg-boss'
import { poolSettings, releasePoolSettings } from '#shared/storage/postgres/session.ts'
import type { Log } from '#shared/core/log.ts'
import { refuseWhenUnreachable } from '#shared/storage/postgres/server-errors.ts'
import { jobNames, deadLetterQueueOf, retryPolicy, jobOptions } from '#shared/domain/jobs.ts'

export const pgBossSchema = 'pgboss'

/** For processes that take no jobs: without maintenance and without a listening connection. */
export const createIdleBoss = (databaseUrl: string): PgBoss =>
  new PgBoss({
    ...poolSettings(databaseUrl),
    schema: pgBossSchema,
    max: 1,
    migrate: false,
    createSchema: false,
    supervise: false,
    schedule: false,
  })

/** Release step: brings the queue's schema and every queue of the board to this version. */
export async function migrateQueue(databaseUrl: string, log: Log): Promise<void> {
  const boss = new PgBoss({
    ...releasePoolSettings(databaseUrl),
    schema: pgBossSchema,
    max: 2,
    schedule: false,
  })
  boss.on('error', error => log.error({ err: error }, 'queue.error'))
  await boss.start().catch(refuseWhenUnreachable)
  for (const name of jobNames) {
    const deadLetterQueue = deadLetterQueueOf(name)
    const { notify: _, heartbeatSeconds: __, ...deadLetterPolicy } = retryPolicy
    await boss.createQueue(deadLetterQueue, {
      ...deadLetterPolicy,
      deleteAfterSeconds: retryPolicy.retentionSeconds,
    })
    const { expireInSeconds, policy, cron } = jobOptions[name]
    const options = { ...retryPolicy, expireInSeconds, deadLetter: deadLetterQueue }
    await boss.createQueue(name, { ...options, policy })
    await boss.updateQueue(name, options)
    if (cron) await boss.schedule(name, cron, {})
  }
  await boss.stop({ graceful: true, timeout: 5_000 })
}
