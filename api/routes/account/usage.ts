import type { Router } from '@koa/router'
import { UsageQuery } from '#api/contract/contract.ts'
import { authenticateRequest, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import {
  usageByDay,
  usageByModel,
  type DayUsage,
  type UsageByModel,
} from '#shared/billing/usage-sums.postgres.ts'

const defaultPeriodMs = 30 * 24 * 3600 * 1000

/** What a vault has used over a time, by the key that asks and those whose place it took. */
export function usage(router: Router, backend: Backend): void {
  router.get('/v1/account/usage', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    const params = parseQuery(ctx, UsageQuery)
    const end = params.end === undefined ? backend.now() : parseExclusiveEnd(params.end)
    const start = params.start === undefined ? end - defaultPeriodMs : parseStart(params.start)
    if (start > end) {
      const hint = params.end === undefined ? 'Without end the period ends now' : 'Swap the two'
      throw new Refusal('invalid', 'start lies after end', hint)
    }

    const period = { start: new Date(start), end: new Date(end) }
    // A day, or a moment, that was named is part of the period.
    const last = new Date(params.end === undefined ? end : end - 1)
    const { query } = backend.postgres
    const [sums, days] = await Promise.all([
      usageByModel(query, caller.scope.vault, period),
      params.by_day ? usageByDay(query, caller.scope.vault, period) : null,
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
  })
}

const presentDay = ({ day, requests, inputTokens, outputTokens, memoryTokens }: DayUsage) => ({
  day,
  requests,
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  memory_tokens: memoryTokens,
})
