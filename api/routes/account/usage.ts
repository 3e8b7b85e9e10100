import type { Router } from '@koa/router'
import { UsageQuery } from '#api/contract/contract.ts'
import { callerOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { momentAfter, momentFrom } from '#shared/core/dates.ts'
import {
  usageByDay,
  usageOfVault,
  type DayUsage,
  type UsageSum,
} from '#shared/billing/usage-sums.postgres.ts'

const defaultMs = 30 * 24 * 3600 * 1000

/** What a vault has used over a time, by the key that asks and those whose place it took. */
export function usage(router: Router, backend: Backend): void {
  router.get('/v1/account/usage', async ctx => {
    const caller = await callerOf(ctx, backend)
    const asked = queryOf(ctx, UsageQuery)
    const end = asked.end === undefined ? backend.now() : momentAfter(asked.end)
    const start = asked.start === undefined ? end - defaultMs : momentFrom(asked.start)
    if (start > end) {
      const hint = asked.end === undefined ? 'Without end the period ends now' : 'Swap the two'
      throw new Refusal('invalid', 'start lies after end', hint)
    }

    const period = { start: new Date(start), end: new Date(end) }
    // A day, or a moment, that was named is part of the period.
    const last = new Date(asked.end === undefined ? end : end - 1)
    const { query } = backend.postgres
    const [sums, days] = await Promise.all([
      usageOfVault(query, caller.scope.vault, period),
      asked.by_day ? usageByDay(query, caller.scope.vault, period) : null,
    ])
    const total = (field: Exclude<keyof UsageSum, 'model'>): number =>
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
  })
}

const presentDay = ({ day, requests, inputTokens, outputTokens, memoryTokens }: DayUsage) => ({
  day,
  requests,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  memory_tokens: memoryTokens,
})
