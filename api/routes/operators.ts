import type { Router } from '@koa/router'
import { requireOperator } from '#api/operators/operator-auth.ts'
import { queuePages } from '#api/operators/queues/routes.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'

/** Metrics and the pages over the queues, for the operator. */
export function operatorPages(router: Router, backend: ApiBackend): void {
  const page = createMetricsCollector(backend)
  router.get('/metrics', async ctx => {
    await requireOperator(ctx, backend)
    const { type, text } = await page()
    ctx.body = text
    ctx.set('Content-Type', type)
  })

  queuePages(router, backend)
}
