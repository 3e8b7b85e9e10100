import { Binary } from 'mongodb'
import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'

/** A memory as it is stored. A tombstone keeps the id taken and nothing else. */
export type MemoryDocument = {
  _id: string
  vault: string
  /** The vault's epoch when the memory was promised; a later epoch makes it invisible. */
  epoch: number
  /** Session vault, or '' for the core vault and all reflections. */
  session: string
  /** The session's epoch when the memory was promised; 0 in the core vault. */
  session_epoch: number
  tier: Tier
  role: Role
  text: string
  /** SHA-256 of the NFC text without outer white space. */
  hash: Binary
  /** When it happened. */
  at: Date
  stored_at: Date
  tokens: number
  /** When it is over, and when somebody asked for it to be: see `endsOf`. */
  expires_at?: Date
  expires_asked?: Date
  importance?: number
  speaker?: string
  /** Of an answer that broke off: a mark for whoever reads the store. */
  interrupted?: boolean
  /** The operation that promised it. */
  operation: string
  /** One vector per vault space, keyed by the space's name. */
  vectors: Record<string, Binary>
  /** Covered by a reflection already. */
  consolidated: boolean
  /** Of a reflection: the batch it was made of, the memories in it, and the span of time they cover. */
  batch?: string
  sources?: string[]
  covers?: { from: Date; to: Date }
  /** The batches that consolidated this memory. */
  consolidated_by?: string[]
  /** Of a copied memory: where it came from. */
  provenance?: { origin_key: string; transferred_at: Date; source_id: string }
  /** Raised by every change of the text or the vectors. */
  version: number
  /** Of an edited memory: who changed it last, when, and what the debt counted it for before. */
  edited?: { operation: string; at: Date; before: number }
  /** Of a shared memory of an organization. `tag_set` is its tags in order, as a JSON array. */
  tags?: string[]
  tag_set?: string
  confidence?: number
  author?: string
  reviewed?: boolean
  by_hand?: boolean
  updated_at?: Date
  /** The writes that made a shared memory what it is, the last few of them. */
  marks?: string[]
  /** Of a tombstone: when it was set, and the vault's epoch then. */
  tomb_at?: Date
  tomb_epoch?: number
  /** The operation that set it, until that is settled. */
  tomb_by?: string
}

/** The fields of what was said, whatever else is asked for. */
export const memoryFields = {
  tier: 1,
  role: 1,
  text: 1,
  at: 1,
  tokens: 1,
  importance: 1,
  speaker: 1,
  expires_at: 1,
} as const

/** The fields a held memory needs; with the vector of one space. */
export const embeddedMemoryProjection = (space: string) => ({
  ...memoryFields,
  tags: 1,
  author: 1,
  [`vectors.${space}`]: 1,
})

export function memoryFromDocument(document: MemoryDocument): Memory {
  const { _id, tier, role, text, at, tokens, importance, speaker, tags, author } = document
  const { expires_at } = document
  return {
    id: _id,
    tier,
    role,
    text,
    at: at.getTime(),
    tokens,
    ...(importance !== undefined && { importance }),
    ...(speaker !== undefined && { speaker }),
    ...(expires_at && { expiresAt: expires_at.getTime() }),
    ...(tags !== undefined && { tags }),
    ...(author !== undefined && { author }),
  }
}

export function embeddedMemoryFromDocument(
  document: MemoryDocument,
  space: string,
): EmbeddedMemory {
  return { ...memoryFromDocument(document), vector: document.vectors[space]!.toFloat32Array() }
}

export const toBinaryVector = (vector: Float32Array): Binary => Binary.fromFloat32Array(vector)
