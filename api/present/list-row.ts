import { presentExpiry } from '#api/present/expiry.ts'
import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import { presentSpan } from '#api/present/span.ts'

/** A row of a list. */
export const presentListRow = (row: ListedRow) => ({
  memory_id: row.id,
  text: row.text,
  date: new Date(row.at).toISOString(),
  tier: row.tier,
  importance: row.importance ?? null,
  role: row.role,
  token_count: row.tokens,
  consolidated: row.consolidated,
  covers: row.covers && presentSpan(row.covers),
  ...(row.speaker !== undefined && { name: row.speaker }),
  ...(row.metadata !== undefined && { metadata: row.metadata }),
  ...presentExpiry(row),
})
