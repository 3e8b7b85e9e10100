import type { Router } from '@koa/router'
import { requireOperatorAdmin } from '#api/edge/admin-auth.ts'
import { ServiceUsageQuery } from '#api/contract/contract.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { serviceUsageByDay } from '#shared/billing/usage-accounts.postgres.ts'

const dayMs = 24 * 3600 * 1000

/** What the whole service is used for, day by day, for whoever runs it. */
export function serviceUsage(router: Router, backend: Backend): void {
  router.get('/v1/operator/usage', async ctx => {
    await requireOperatorAdmin(ctx, backend)
    const { days } = parseQuery(ctx, ServiceUsageQuery)
    const now = backend.now()
    const rows = await serviceUsageByDay(backend.postgres.query, days)
    ctx.body = {
      start: isoDay(now - (days - 1) * dayMs),
      end: isoDay(now),
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

const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)
