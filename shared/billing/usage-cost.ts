import type { ModelTokens } from '#shared/billing/usage-report.postgres.ts'
import type { Prices, TablePrice } from '#shared/models/prices.ts'

/** Amounts are told to a millionth of a cent. */
const round = (dollars: number): number => Math.round(dollars * 1e8) / 1e8

/** What calls of models cost; nothing where there were none. */
export function costOfModels(
  prices: Pick<Prices, 'costOf'>,
  models: readonly ModelTokens[],
): {
  /** Dollars; null when none of the models has a price. */
  costUsd: number | null
  /** Input and output tokens of models without a price. */
  unpricedTokens: number
} {
  let cost = 0
  let unpricedTokens = 0
  let isPriced = models.length === 0
  for (const { model, input, cached, output } of models) {
    const tokens = { inputTokens: input, cachedTokens: cached, outputTokens: output }
    const dollars = prices.costOf(model, tokens)
    if (dollars === null) unpricedTokens += input + output
    else [cost, isPriced] = [cost + dollars, true]
  }
  return { costUsd: isPriced ? round(cost) : null, unpricedTokens }
}

/** The prices that a cost is made of, each once, by name. */
export function pricesOf(
  prices: Pick<Prices, 'priceOf'>,
  models: readonly ModelTokens[],
): TablePrice[] {
  const found = new Map<string, TablePrice>()
  for (const { model } of models) {
    const price = prices.priceOf(model)
    if (price) found.set(price.model, price)
  }
  return [...found.values()].toSorted((a, b) => (a.model < b.model ? -1 : 1))
}
