import { thresholdImportance, thresholdTokens, type Debt } from '#shared/vault/consolidate/debt.ts'

/** The `reflection` block of an answer. */
export const presentDebt = ({ raw, tier2, suggestion }: Debt) => ({
  unconsolidated: {
    raw: {
      units: raw.units,
      est_tokens: raw.tokens,
      importance_equiv: roundToThousandths(raw.importance),
    },
    tier2: { count: tier2.count, importance: tier2.importance, est_tokens: tier2.tokens },
  },
  threshold_tokens: thresholdTokens,
  threshold_importance: thresholdImportance,
  suggestion,
})

/** The same on one line, for the `X-Memory-Reflection-Debt` header. */
export const presentDebtHeader = ({ raw, tier2, suggestion }: Debt) => ({
  raw_units: raw.units,
  raw_tokens: raw.tokens,
  raw_importance_equiv: roundToThousandths(raw.importance),
  t2_count: tier2.count,
  t2_importance: tier2.importance,
  t2_tokens: tier2.tokens,
  threshold: thresholdTokens,
  threshold_importance: thresholdImportance,
  suggestion,
})

/** A token is 0.003 of importance: no more digits, and no fewer, say what it is. */
const roundToThousandths = (importance: number): number => Math.round(importance * 1_000) / 1_000
