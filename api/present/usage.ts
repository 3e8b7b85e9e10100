import { costOfModels } from '#shared/billing/usage-cost.ts'
import type { TokenSums } from '#shared/billing/usage-report.postgres.ts'
import type { Prices, TablePrice } from '#shared/models/prices.ts'

export function presentUsageSums(prices: Prices, sums: TokenSums) {
  const { costUsd, unpricedTokens } = costOfModels(prices, sums.models)
  return {
    requests: sums.requests,
    input_tokens: sums.input,
    cached_tokens: sums.cached,
    output_tokens: sums.output,
    memory_tokens: sums.memory,
    cost_usd: costUsd,
    unpriced_tokens: unpricedTokens,
  }
}

export const presentPrice = ({ model, input, cached, output, source, date }: TablePrice) => ({
  model,
  input,
  cached: cached ?? input,
  output,
  source,
  date,
})
