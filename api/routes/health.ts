import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { HttpServer } from '#api/server.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import { pendingMigrations } from '#shared/postgres/migrate.ts'
import { queueDepths } from '#shared/queue/depth.ts'

/** Alive and answering, and able to work; open to everyone. */
export function health(router: Router, backend: Backend): void {
  router.get('/health', ctx => {
    ctx.body = { status: 'ok', timestamp: new Date().toISOString() }
  })

  router.get('/health/live', ctx => {
    ctx.body = { status: 'ok' }
  })

  router.get('/health/ready', async ctx => {
    const { postgres, mongo } = backend
    const parts = {
      postgres: postgres.query('select 1'),
      migrations: pendingMigrations(postgres.query).then(refusePending),
      mongodb: mongo.ping(),
      queue: queueDepths(postgres.query),
    }
    const failing = await Promise.all(Object.entries(parts).map(faultOf))
    const faults = failing.filter(fault => fault !== null)
    ctx.set('Cache-Control', 'no-store')
    if (isDraining(ctx)) faults.push('this process is about to stop')
    if (faults.length > 0) throw new Refusal('unavailable', `Not ready: ${faults.join('; ')}`)
    const ages = (await parts.queue).map(({ oldestSeconds }) => oldestSeconds)
    ctx.body = { status: 'ok', queue_lag_seconds: Math.max(0, ...ages) }
  })
}

const isDraining = ({ req }: Context): boolean =>
  (req.socket as { server?: Partial<HttpServer> }).server?.draining === true

const faultOf = ([part, work]: [string, Promise<unknown>]): Promise<string | null> =>
  work.then(
    () => null,
    (error: Error) => `${part}: ${error.message}`,
  )

function refusePending(names: string[]): void {
  if (names.length > 0) throw new Error(`the release step has not run (${names.join(', ')})`)
}
