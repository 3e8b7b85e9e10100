import type { KeyRow } from '#shared/access/memory-keys.postgres.ts'
import { importanceFromTokens } from '#shared/core/tokens.ts'

/** What waits to be consolidated, and from when on we suggest doing it. */
export type Debt = {
  raw: { units: number; tokens: number; importance: number }
  tier2: { count: number; importance: number; tokens: number }
  suggestion: string | null
}

export const thresholdTokens = 50_000
export const thresholdImportance = 150

/**
 * The debt of a vault out of the counters that came with its key: no query of its own. A counter may be
 * below nought while something is deleted before it is settled; then nothing waits.
 */
export function reflectionDebt(row: KeyRow): Debt {
  const tokens = Math.max(0, row.rawTokens)
  const importance = importanceFromTokens(tokens)
  const tier2Importance = Math.max(0, row.tier2Importance)
  const suggestions = [
    [importance, 'raw consolidation suggested'],
    [tier2Importance, 'tier 2 consolidation suggested'],
  ] as const
  const due = suggestions
    .filter(([waiting]) => waiting >= thresholdImportance)
    .map(([waiting, words]) => `${words}: ${Math.floor(waiting)} unconsolidated importance`)
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
