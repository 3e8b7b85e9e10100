import type { Span } from '#shared/domain/lease.ts'
import { originOf } from '#shared/domain/origin.ts'
import { recencyWindow, type Memory, type RecencyWindow } from '#shared/domain/memory.ts'
import { matchReasons } from '#shared/search/ranking/signals.ts'
import type { RecalledMemory } from '#shared/vault/read/search/recall.ts'
import type { DateSearchRow } from '#shared/vault/read/lists/dated-row.ts'
import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import type { ProfileRow } from '#shared/vault/read/prepare/read-profile.ts'

/** A span of time with ISO ends. */
export const presentSpan = ({ from, to }: Span) => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
})

/** When a memory will be gone, where it will. */
export const presentExpiry = ({ expiresAt }: Pick<Memory, 'expiresAt'>) =>
  expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() }

/** Above 0 stays above 0. */
export const roundShare = (share: number): number =>
  share > 0 ? Math.max(0.0001, Math.round(share * 10_000) / 10_000) : 0

/** How a row fits what was asked. `relevance` is another name of the score. */
const presentMatch = ({
  score,
  similarity,
  signals,
}: Pick<RecalledMemory, 'score' | 'similarity' | 'signals'>) => ({
  score: roundShare(score),
  relevance: roundShare(score),
  ...(similarity !== undefined && { similarity: Math.round(similarity * 10_000) / 10_000 }),
  why: matchReasons(signals),
})

/** Which memory says otherwise of the same thing, or of which it does. */
const presentSuccession = ({ supersededBy, supersedes }: RecalledMemory) => ({
  ...(supersededBy !== undefined && { superseded_by: supersededBy }),
  ...(supersedes && { supersedes }),
})

/** The ranking of a line of a block. */
export const presentBlockLine = (row: RecalledMemory) => ({
  memory_id: row.memory.id,
  origin: originOf(row.memory),
  ...(row.vault && { vault: row.vault }),
  ...presentMatch(row),
  ...presentSuccession(row),
})

/** A search row. */
export const presentSearchResult = (row: RecalledMemory, now: number) => {
  const { memory, source } = row
  return {
    id: memory.id,
    tier: memory.tier,
    role: memory.role,
    origin: originOf(memory),
    content: memory.text,
    ...presentMatch(row),
    ...(row.copies > 1 && { copies: row.copies }),
    ...presentSuccession(row),
    window: recencyWindow(memory.at, now),
    timestamp: new Date(memory.at).toISOString(),
    source,
    ...(row.vault && { vault: row.vault }),
    ...(memory.importance !== undefined && { importance: memory.importance }),
    ...(memory.speaker !== undefined && { name: memory.speaker }),
    ...(memory.tags !== undefined && { tags: memory.tags }),
    ...(memory.author !== undefined && { author: memory.author }),
    ...(memory.metadata !== undefined && { metadata: memory.metadata }),
    ...presentExpiry(memory),
  }
}

/** How the rows of an answer spread over windows and tiers, and what they weigh. */
export function breakDownResults(rows: readonly Pick<RecalledMemory, 'memory'>[], now: number) {
  const windows: Record<RecencyWindow, number> = { hot: 0, working: 0, longterm: 0 }
  const tiers = { raw: 0, tier2: 0, tier3: 0 }
  const names = { 1: 'raw', 2: 'tier2', 3: 'tier3' } as const
  let tokens = 0
  for (const { memory } of rows) {
    windows[recencyWindow(memory.at, now)]++
    tiers[names[memory.tier]]++
    tokens += memory.tokens
  }
  return { windows, tiers, tokens }
}

/** A row of a date search. */
export const presentDateSearchRow = (row: DateSearchRow) => ({
  id: row.id,
  tier: row.tier,
  role: row.role,
  origin: originOf(row),
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

/** A row of a list. */
export const presentListRow = (row: ListedRow) => ({
  memory_id: row.id,
  text: row.text,
  date: new Date(row.at).toISOString(),
  tier: row.tier,
  importance: row.importance ?? null,
  role: row.role,
  origin: originOf(row),
  token_count: row.tokens,
  consolidated: row.consolidated,
  ...(row.feedback && { feedback: row.feedback }),
  covers: row.covers && presentSpan(row.covers),
  ...(row.speaker !== undefined && { name: row.speaker }),
  ...(row.metadata !== undefined && { metadata: row.metadata }),
  ...presentExpiry(row),
})

/** A row of a profile. */
export const presentProfileEntry = (row: ProfileRow) => ({
  kind: row.kind,
  quote: row.quote,
  memory_id: row.memory,
  since: new Date(row.since).toISOString(),
  until: row.until === null ? null : new Date(row.until).toISOString(),
  replaced_by: row.replacedBy,
  source: row.source,
  ...(row.speaker !== undefined && row.author === undefined && { name: row.speaker }),
  ...(row.tags !== undefined && { tags: row.tags }),
  ...(row.author !== undefined && { author: row.author }),
})
