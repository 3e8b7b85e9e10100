import type { AnswerOf } from '#api/client/client.ts'
import type { Tier } from '#api/console/app/parts/chips.ts'

/** A memory as cards show it, whichever answer it came in. */
export type Shown = {
  id: string
  text: string
  at: string
  tier: Tier
  role: string
  source: 'core' | 'session' | 'org'
  importance?: number | null | undefined
  name?: string | undefined
  consolidated?: boolean
  covers?: { from: string; to: string } | null | undefined
  tokens?: number
  /** From then on it is gone. */
  expires?: string | undefined
}

type Listed = AnswerOf<'GET /v1/memory/list'>['items'][number]
type Found = AnswerOf<'POST /v1/memory/search'>['memories'][number]
type Dated = AnswerOf<'POST /v1/memory/date-search'>['memories'][number]

export const shownOfListed = (memory: Listed): Shown => ({
  id: memory.memory_id,
  text: memory.text,
  at: memory.date,
  tier: memory.tier,
  role: memory.role,
  source: 'core',
  importance: memory.importance,
  name: memory.name,
  consolidated: memory.consolidated,
  covers: memory.covers,
  tokens: memory.token_count,
  expires: memory.expires_at,
})

export const shownOfFound = (memory: Found): Shown => ({
  id: memory.id,
  text: memory.content,
  at: memory.timestamp,
  tier: memory.tier,
  role: memory.role,
  source: memory.source,
  importance: memory.importance,
  name: memory.name,
  expires: memory.expires_at,
})

export const shownOfDated = (memory: Dated): Shown => ({
  id: memory.id,
  text: memory.content,
  at: memory.timestamp,
  tier: memory.tier,
  role: memory.role,
  source: memory.source,
  importance: memory.importance,
  name: memory.name,
  covers: memory.covers,
  tokens: memory.token_count,
  expires: memory.expires_at,
})
