import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { HttpServer } from '#api/edge/server.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { createReadinessCheck, presentReadiness } from '#shared/operations/readiness.ts'

/** Liveness and readiness; open. */
export function health(router: Router, backend: Backend): void {
  router.get('/health', ctx => {
    ctx.body = { status: 'ok', timestamp: new Date().toISOString() }
  })

  router.get('/health/live', ctx => {
    ctx.body = { status: 'ok' }
  })

  const checkReadiness = createReadinessCheck(backend)
  router.get('/health/ready', async ctx => {
    const { faults, ...readiness } = await checkReadiness()
    ctx.set('Cache-Control', 'no-store')
    const faultsNow = isDraining(ctx) ? [...faults, 'this process is about to stop'] : faults
    if (faultsNow.length > 0) throw new Refusal('unavailable', `Not ready: ${faultsNow.join('; ')}`)
    ctx.body = presentReadiness(readiness)
  })
}

const isDraining = ({ req }: Context): boolean =>
  (req.socket as { server?: Partial<HttpServer> }).server?.draining === true
