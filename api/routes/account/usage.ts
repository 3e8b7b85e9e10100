import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { Refusal } from '#shared/core/errors.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import {
  usageByDay,
  usageByModel,
  type DayUsage,
  type UsageByModel,
} from '#shared/billing/usage-sums.postgres.ts'

const defaultPeriodMs = 30 * 24 * 3600 * 1000

/** The usage of a vault in a period: by the caller's key and by the keys it was rotated from. */
export function usage(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/usage',
    auth: memoryKey(),
    async handle({ caller, query }, ctx) {
      const end = query.end === undefined ? backend.now() : parseExclusiveEnd(query.end)
      const start = query.start === undefined ? end - defaultPeriodMs : parseStart(query.start)
      if (start > end) {
        const hint = query.end === undefined ? 'Without end the period ends now' : 'Swap the two'
        throw new Refusal('invalid', 'start lies after end', hint)
      }

      const period = { start: new Date(start), end: new Date(end) }
      // A day, or a moment, given as `end` is part of the period.
      const last = new Date(query.end === undefined ? end : end - 1)
      const [sums, days] = await Promise.all([
        usageByModel(backend.postgres.query, caller.scope.vault, period),
        query.by_day ? usageByDay(backend.postgres.query, caller.scope.vault, period) : null,
      ])
      const total = (field: Exclude<keyof UsageByModel, 'model'>): number =>
        sums.reduce((sum, row) => sum + row[field], 0)
      ctx.body = {
        key: caller.maskedKey,
        period: { start: period.start.toISOString(), end: last.toISOString() },
        total_requests: total('requests'),
        total_input_tokens: total('inputTokens'),
        total_output_tokens: total('outputTokens'),
        total_memory_tokens: total('memoryTokens'),
        by_model: Object.fromEntries(
          sums
            .filter(({ model }) => model !== '')
            .map(({ model, requests, inputTokens }) => [
              model,
              { requests, input_tokens: inputTokens },
            ]),
        ),
        ...(days && { by_day: days.map(presentDay) }),
      }
    },
  })
}

const presentDay = ({ day, requests, inputTokens, outputTokens, memoryTokens }: DayUsage) => ({
  day,
  requests,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  memory_tokens: memoryTokens,
})
