import { recencyWindow, type RecencyWindow } from '#shared/domain/recency-window.ts'
import { presentExpiry } from '#api/present/expiry.ts'
import type { RecalledMemory } from '#shared/vault/read/recall.ts'

/** A search row. */
export const presentSearchResult = ({ memory, score, source }: RecalledMemory, now: number) => ({
  id: memory.id,
  tier: memory.tier,
  role: memory.role,
  content: memory.text,
  score: Math.round(score * 10_000) / 10_000,
  window: recencyWindow(memory.at, now),
  timestamp: new Date(memory.at).toISOString(),
  source,
  ...(memory.importance !== undefined && { importance: memory.importance }),
  ...(memory.speaker !== undefined && { name: memory.speaker }),
  ...(memory.tags !== undefined && { tags: memory.tags }),
  ...(memory.author !== undefined && { author: memory.author }),
  ...presentExpiry(memory),
})

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
