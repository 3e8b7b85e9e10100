import { presentPeriod } from '#api/present/listed.ts'
import type { DatedRow } from '#shared/memory/date-search.ts'

/** A row of a date search. */
export const presentDated = (row: DatedRow, session: string | null) => ({
  id: row.id,
  tier: row.tier,
  role: row.role,
  content: row.text,
  timestamp: new Date(row.at).toISOString(),
  source: session === null ? 'core' : 'session',
  token_count: row.tokens,
  ...(row.score !== undefined && { score: Math.round(row.score * 10_000) / 10_000 }),
  ...(row.importance !== undefined && { importance: row.importance }),
  ...(row.covers && { covers: presentPeriod(row.covers) }),
  ...(row.speaker !== undefined && { name: row.speaker }),
})
