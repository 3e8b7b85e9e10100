import type { Router } from '@koa/router'
import { requireOperator } from '#api/operators/operator-auth.ts'
import { queueDashboard } from '#api/operators/queue-dashboard.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'

/** Metrics and the queue dashboard, for the operator. */
export function operatorPages(router: Router, backend: ApiBackend): void {
  const page = createMetricsCollector(backend)
  router.get('/metrics', async ctx => {
    await requireOperator(ctx, backend)
    const { type, text } = await page()
    ctx.body = text
    ctx.set('Content-Type', type)
  })

  const dashboard = queueDashboard(backend)
  router.all(/^\/admin\/queues(?:\/.*)?$/, async ctx => {
    await requireOperator(ctx, backend)
    await dashboard(ctx)
  })
}
