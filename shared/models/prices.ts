import type { OwnPrices, Price } from '#shared/core/price-file.ts'
import pages from '#shared/models/prices.json' with { type: 'json' }
import { qualifiedName } from '#shared/models/resolve-model.ts'

/** A price of the table. */
export type TablePrice = Price & {
  /** As the table names it. */
  model: string
  /** Page that it was read on; null for one of the operator. */
  source: string | null
  /** Day on which it was read, `YYYY-MM-DD`; null for one of the operator. */
  date: string | null
}

/**
 * List prices of makers for text, by `<provider>/<model>`. Where a maker has several prices for a model it is that of
 * standard processing and of a short prompt; writing to a cache is priced as input. A model whose price depends on the
 * hour (DeepSeek), and one whose sources disagree (Mistral), has none.
 */
const shipped: ReadonlyMap<string, TablePrice> = new Map(
  pages.flatMap(({ source, date, models }) =>
    Object.entries(models as Record<string, Price>).map(([name, price]) => [
      name,
      { ...price, model: name, source, date },
    ]),
  ),
)

/** A snapshot of a model: `gpt-5-2025-08-07`, `claude-haiku-4-5-20251001`. */
const snapshotDate = /-(?:\d{4}-\d{2}-\d{2}|\d{8})$/

/** What model calls cost: the shipped table, changed by the operator's. */
export class Prices {
  readonly #own: ReadonlyMap<string, TablePrice | null>
  /** The operator's entries that end in `*`, without it, the longest first. */
  readonly #beginnings: readonly string[]

  constructor(own: OwnPrices) {
    const unsourced = { source: null, date: null }
    this.#own = new Map(
      [...own].map(([name, price]) => [name, price && { ...price, model: name, ...unsourced }]),
    )
    this.#beginnings = [...own.keys()]
      .filter(name => name.endsWith('*'))
      .map(name => name.slice(0, -1))
      .toSorted((a, b) => b.length - a.length)
  }

  /**
   * The price of a model by its name, with or without its provider. A snapshot without a price of its own has that of its
   * model. Null when it is not known.
   */
  priceOf(model: string): TablePrice | null {
    const name = qualifiedName(model)
    const names = [name, name.replace(snapshotDate, '')]
    const own = names.find(one => this.#own.has(one)) ?? this.#beginningOf(name)
    if (own !== undefined) return this.#own.get(own)!
    return names.map(one => shipped.get(one)).find(Boolean) ?? null
  }

  #beginningOf(name: string): string | undefined {
    const beginning = this.#beginnings.find(one => name.startsWith(one))
    return beginning === undefined ? undefined : `${beginning}*`
  }

  /** Dollars for tokens of a model; null when it has no price. */
  costOf(
    model: string,
    tokens: {
      /** All input tokens, those from a provider's cache included. */
      inputTokens: number
      cachedTokens?: number
      outputTokens: number
    },
  ): number | null {
    const { inputTokens, cachedTokens = 0, outputTokens } = tokens
    const price = this.priceOf(model)
    if (!price) return null
    const { input, cached = input, output } = price
    const fresh = Math.max(0, inputTokens - cachedTokens)
    const dollars = fresh * input + (inputTokens - fresh) * cached + outputTokens * output
    // The tail of a product of floats is no amount.
    return Number((dollars / 1_000_000).toPrecision(10))
  }
}
