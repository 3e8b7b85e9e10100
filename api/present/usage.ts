import { costOfModels } from '#shared/billing/usage-cost.ts'
import type { ModelTokens, TokenSums } from '#shared/billing/usage-report.postgres.ts'
import type { Prices, TablePrice } from '#shared/models/prices.ts'

/** What calls of models cost. */
export function presentCost(prices: Prices, models: readonly ModelTokens[]) {
  const { costUsd, unpricedTokens } = costOfModels(prices, models)
  return { cost_usd: costUsd, unpriced_tokens: unpricedTokens }
}

export const presentUsageSums = (prices: Prices, sums: TokenSums) => ({
  requests: sums.requests,
  input_tokens: sums.input,
  cached_tokens: sums.cached,
  output_tokens: sums.output,
  memory_tokens: sums.memory,
  ...presentCost(prices, sums.models),
})

export const presentPrice = ({ model, input, cached, output, source, date }: TablePrice) => ({
  model,
  input,
  cached: cached ?? input,
  output,
  source,
  date,
})
