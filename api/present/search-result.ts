import { recencyWindow, type RecencyWindow } from '#shared/domain/recency-window.ts'
import { matchReasons } from '#shared/search/ranking/signals.ts'
import { presentExpiry } from '#api/present/expiry.ts'
import type { RecalledMemory } from '#shared/vault/read/search/recall.ts'

/** Above 0 stays above 0. */
const roundShare = (share: number): number =>
  share > 0 ? Math.max(0.0001, Math.round(share * 10_000) / 10_000) : 0

type Match = Pick<RecalledMemory, 'score' | 'similarity' | 'signals'>

/** How a row fits what was asked. `relevance` is another name of the score. */
export const presentMatch = ({ score, similarity, signals }: Match) => ({
  score: roundShare(score),
  relevance: roundShare(score),
  ...(similarity !== undefined && { similarity: Math.round(similarity * 10_000) / 10_000 }),
  why: matchReasons(signals),
})

/** What a line of a block was ranked by. */
export const presentBlockLine = (row: RecalledMemory) => ({
  memory_id: row.memory.id,
  ...presentMatch(row),
})

/** A search row. */
export const presentSearchResult = (row: RecalledMemory, now: number) => {
  const { memory, source } = row
  return {
    id: memory.id,
    tier: memory.tier,
    role: memory.role,
    content: memory.text,
    ...presentMatch(row),
    window: recencyWindow(memory.at, now),
    timestamp: new Date(memory.at).toISOString(),
    source,
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
