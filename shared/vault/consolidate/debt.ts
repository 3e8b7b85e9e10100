import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import { importanceFromTokens } from '#shared/core/tokens.ts'

/** The unconsolidated memories of a vault, and the consolidation to suggest. */
export type Debt = {
  raw: { units: number; tokens: number; importance: number }
  tier2: { count: number; importance: number; tokens: number }
  suggestion: string | null
}

export const thresholdTokens = 50_000
export const thresholdImportance = 150

/** The debt of a vault, from the counters that were read with its key. A negative counter counts as 0. */
export function reflectionDebt(row: KeyRow): Debt {
  const tokens = Math.max(0, row.rawTokens)
  const importance = importanceFromTokens(tokens)
  const tier2Importance = Math.max(0, row.tier2Importance)
  const suggestions = [
    [importance, 'raw consolidation suggested'],
    [tier2Importance, 'tier 2 consolidation suggested'],
  ] as const
  const due = suggestions
    .filter(([importance]) => importance >= thresholdImportance)
    .map(([importance, text]) => `${text}: ${Math.floor(importance)} unconsolidated importance`)
  return {
    raw: { units: Math.max(0, row.rawUnits), tokens, importance },
    tier2: {
      count: Math.max(0, row.tier2Count),
      importance: tier2Importance,
      tokens: Math.max(0, row.tier2Tokens),
    },
    suggestion: due.length > 0 ? due.join('; ') : null,
  }
}
