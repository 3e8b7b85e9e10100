import { Binary } from 'mongodb'
import { metadataFromTerms } from '#shared/domain/metadata.ts'
import type { Feedback } from '#shared/domain/feedback.ts'
import type { EmbeddedMemory, Memory, Role, Tier } from '#shared/domain/memory.ts'

/** A memory as it is stored. A tombstone keeps the id and nothing else. */
export type MemoryDocument = {
  _id: string
  vault: string
  /** The vault's epoch when the memory was accepted; a later epoch makes it invisible. */
  epoch: number
  /** Session vault, or '' for the core vault and all reflections. */
  session: string
  /** The session's epoch when the memory was accepted; 0 in the core vault. */
  session_epoch: number
  tier: Tier
  role: Role
  text: string
  /** SHA-256 of the NFC text without outer white space. */
  hash: Binary
  /** Event time. */
  at: Date
  stored_at: Date
  tokens: number
  /** When it expires, and the expiry a client requested: see `expiryFor`. */
  expires_at?: Date
  expires_asked?: Date
  importance?: number
  speaker?: string
  /** Terms of the fields that the client gave it: see `metadataTerms`. */
  metadata?: string[]
  /** What its owner has said of it. */
  feedback?: Feedback
  /** For a message that was stored in several pieces: the id of its first one, and which this is, from 0. */
  piece?: { message: string; number: number }
  /** For a piece of a document: the document's id, and the upload that has last stored or found it. */
  file?: { id: string; by: string }
  /** The answer broke off; only for readers of the store. */
  interrupted?: boolean
  /** The operation that stored it. */
  operation: string
  /** One vector per vault space, keyed by the space's name. */
  vectors: Record<string, Binary>
  /** Whether a reflection covers it. */
  consolidated: boolean
  /** For a reflection: its batch, the number of memories in it, and the span of time they cover. */
  batch?: string
  sources?: string[]
  covers?: { from: Date; to: Date }
  /** The batches that consolidated this memory. */
  consolidated_by?: string[]
  /** The deletion that made it unconsolidated again, until that is finalized. */
  released_by?: string
  /** For a copied memory: its source. */
  provenance?: { origin_key: string; transferred_at: Date; source_id: string }
  /** Raised by every change of the text or the vectors. */
  version: number
  /** For an edited memory: who changed it last, when, and its share of the debt before. */
  edited?: { operation: string; at: Date; before: number }
  /** The tags of a shared memory of an organization. `tag_set` is the sorted tags as a JSON array. */
  tags?: string[]
  tag_set?: string
  confidence?: number
  author?: string
  reviewed?: boolean
  by_hand?: boolean
  /** For an updated shared memory: its first author and time, and the authors of later texts. */
  first_said?: { author: string; at: Date }
  contributors?: string[]
  /** When a member last repeated it. */
  confirmed_at?: Date
  updated_at?: Date
  /** The last few writes of a shared memory. */
  marks?: string[]
  /** For a tombstone: when it was set, and the vault's epoch then. */
  tomb_at?: Date
  tomb_epoch?: number
  /** The operation that set it, until that has ended. */
  tomb_by?: string
}

/** The projection of fields that are named with a space between them. */
export const projectionOf = (names: string): Record<string, 1> =>
  Object.fromEntries(names.split(' ').map(name => [name, 1]))

/** The fields of content, which every projection needs. */
export const memoryFields = projectionOf(
  'tier role text at tokens importance speaker metadata piece expires_at',
)

/** The fields of a memory in an index, with its vector of one space. */
export const embeddedMemoryProjection = (space: string) => ({
  ...memoryFields,
  tags: 1,
  author: 1,
  [`vectors.${space}`]: 1,
})

export function memoryFromDocument(document: MemoryDocument): Memory {
  const { _id, tier, role, text, at, tokens, importance, speaker, tags, author } = document
  const { expires_at, metadata, piece } = document
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
    ...(metadata && metadata.length > 0 && { metadata: metadataFromTerms(metadata) }),
    ...(piece && { piece }),
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
