import { presentExpiry } from '#api/present/expiry.ts'
import type { DateSearchRow } from '#shared/vault/read/lists/dated-row.ts'
import { presentMatch } from '#api/present/search-result.ts'
import { presentSpan } from '#api/present/span.ts'

/** A row of a date search. */
export const presentDateSearchRow = (row: DateSearchRow) => ({
  id: row.id,
  tier: row.tier,
  role: row.role,
  content: row.text,
  timestamp: new Date(row.at).toISOString(),
  source: row.source,
  token_count: row.tokens,
  ...(row.hit && presentMatch(row.hit)),
  ...(row.importance !== undefined && { importance: row.importance }),
  ...(row.covers && { covers: presentSpan(row.covers) }),
  ...(row.speaker !== undefined && { name: row.speaker }),
  ...(row.tags !== undefined && { tags: row.tags }),
  ...(row.author !== undefined && { author: row.author }),
  ...(row.metadata !== undefined && { metadata: row.metadata }),
  ...presentExpiry(row),
})
