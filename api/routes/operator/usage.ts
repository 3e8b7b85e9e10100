import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { operator } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { serviceUsageByDay } from '#shared/billing/usage-sums.postgres.ts'

const dayMs = 24 * 3600 * 1000

/** The usage of the whole service by day, for the operator. */
export function serviceUsage(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/operator/usage',
    auth: operator,
    async handle({ query }, ctx) {
      const { days } = query
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
    },
  })
}

const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10)
