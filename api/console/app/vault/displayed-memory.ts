import type {
  DatedMemory,
  Feedback,
  ListedMemory,
  Metadata,
  RecalledMemory,
  Tier,
} from '#api/contract/generated/types.ts'

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
  expires_at?: string | undefined
  metadata?: Metadata | undefined
  feedback?: Feedback | undefined
}

export const fromListed = (memory: ListedMemory): DisplayedMemory => ({
  ...memory,
  id: memory.memory_id,
  at: memory.date,
  source: 'core',
})

/** From `search` or `date-search`. */
export const fromFound = (
  memory: Omit<RecalledMemory | DatedMemory, 'expires_at'> & { expires_at?: string | undefined },
): DisplayedMemory => ({ ...memory, text: memory.content, at: memory.timestamp })
