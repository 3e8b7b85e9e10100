import type { KeyRow } from '#shared/postgres/keys.ts'
import { importanceOfTokens } from '#shared/tokens.ts'

/** What waits to be consolidated, and from when on we suggest doing it. */
export type Debt = {
  raw: { units: number; tokens: number; importance: number }
  tier2: { count: number; importance: number; tokens: number }
  suggestion: string | null
}

export const thresholdTokens = 50_000
export const thresholdImportance = 150

/** The debt of a vault out of the counters that came with its key: no query of its own. */
export function debtOf(row: KeyRow): Debt {
  const importance = importanceOfTokens(row.rawTokens)
  const suggestions = [
    [importance, 'raw consolidation suggested'],
    [row.tier2Importance, 'tier 2 consolidation suggested'],
  ] as const
  const due = suggestions
    .filter(([waiting]) => waiting >= thresholdImportance)
    .map(([waiting, words]) => `${words}: ${Math.floor(waiting)} unconsolidated importance`)
  return {
    raw: { units: row.rawUnits, tokens: row.rawTokens, importance },
    tier2: {
      count: row.tier2Count,
      importance: row.tier2Importance,
      tokens: row.tier2Tokens,
    },
    suggestion: due.length > 0 ? due.join('; ') : null,
  }
}
