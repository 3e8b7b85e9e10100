import type { Metadata } from '#api/contract/generated/types.ts'
import type { EndpointResponse } from '#api/client/client.ts'
import type { Tier } from '#api/console/app/parts/chips.ts'

/** A memory as cards display it, from any endpoint. */
export type DisplayedMemory = {
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
  expiresAt?: string | undefined
  metadata?: Metadata | undefined
}

type ListedMemory = EndpointResponse<'GET /v1/memory/list'>['items'][number]
type SearchedMemory = EndpointResponse<'POST /v1/memory/search'>['memories'][number]
type DateSearchedMemory = EndpointResponse<'POST /v1/memory/date-search'>['memories'][number]

export const fromListedMemory = (memory: ListedMemory): DisplayedMemory => ({
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
  expiresAt: memory.expires_at,
  metadata: memory.metadata,
})

export const fromSearchedMemory = (memory: SearchedMemory): DisplayedMemory => ({
  id: memory.id,
  text: memory.content,
  at: memory.timestamp,
  tier: memory.tier,
  role: memory.role,
  source: memory.source,
  importance: memory.importance,
  name: memory.name,
  expiresAt: memory.expires_at,
  metadata: memory.metadata,
})

export const fromDateSearchedMemory = (memory: DateSearchedMemory): DisplayedMemory => ({
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
  expiresAt: memory.expires_at,
  metadata: memory.metadata,
})
