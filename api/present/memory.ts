import { windowOf, type Window } from '#shared/domain/age-window.ts'
import { presentEnd } from '#api/present/end.ts'
import type { Recalled } from '#shared/vault/read/recall.ts'

/** A search row. */
export const presentFound = ({ memory, score, source }: Recalled, now: number) => ({
  id: memory.id,
  tier: memory.tier,
  role: memory.role,
  content: memory.text,
  score: Math.round(score * 10_000) / 10_000,
  window: windowOf(memory.at, now),
  timestamp: new Date(memory.at).toISOString(),
  source,
  ...(memory.importance !== undefined && { importance: memory.importance }),
  ...(memory.speaker !== undefined && { name: memory.speaker }),
  ...(memory.tags !== undefined && { tags: memory.tags }),
  ...(memory.author !== undefined && { author: memory.author }),
  ...presentEnd(memory),
})

/** How the rows of an answer spread over windows and tiers, and what they weigh. */
export function breakdownOf(rows: readonly Pick<Recalled, 'memory'>[], now: number) {
  const windows: Record<Window, number> = { hot: 0, working: 0, longterm: 0 }
  const tiers = { raw: 0, tier2: 0, tier3: 0 }
  const names = { 1: 'raw', 2: 'tier2', 3: 'tier3' } as const
  let tokens = 0
  for (const { memory } of rows) {
    windows[windowOf(memory.at, now)]++
    tiers[names[memory.tier]]++
    tokens += memory.tokens
  }
  return { windows, tiers, tokens }
}
