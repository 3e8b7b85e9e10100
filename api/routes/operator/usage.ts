import type { Router } from '@koa/router'
import { actingOperator } from '#api/edge/admin.ts'
import { ServiceUsageQuery } from '#api/contract/contract.ts'
import { queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { usageOfService } from '#shared/billing/usage-accounts.postgres.ts'

const dayMs = 24 * 3600 * 1000

/** What the whole service is used for, day by day, for whoever runs it. */
export function serviceUsage(router: Router, backend: Backend): void {
  router.get('/v1/operator/usage', async ctx => {
    await actingOperator(ctx, backend)
    const { days } = queryOf(ctx, ServiceUsageQuery)
    const now = backend.now()
    const rows = await usageOfService(backend.postgres.query, days)
    ctx.body = {
      start: dayOf(now - (days - 1) * dayMs),
      end: dayOf(now),
      by_day: rows.map(row => ({
        day: row.day,
        accounts: row.accounts,
        requests: row.requests,
        input_tokens: row.inputTokens,
        output_tokens: row.outputTokens,
        memory_tokens: row.memoryTokens,
      })),
    }
  })
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
