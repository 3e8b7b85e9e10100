import type { Filter } from 'mongodb'
import { metadataFromTerms, type Metadata } from '#shared/domain/metadata.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type MemoryCollection } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { projectionOf, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'

export type SharedMemory = {
  id: string
  text: string
  /** Sorted, each once. */
  tags: readonly string[]
  /** How sure the tags are, 0 to 1. */
  confidence: number
  /** The member it comes from, or the admin who seeded it. */
  author: string
  /** A person has decided about it. */
  reviewed: boolean
  /** An admin has changed its text. */
  byHand?: boolean
  /** No member sees it before a person has decided about it. */
  pending?: boolean
  /** When its text was said, epoch milliseconds. */
  acquiredAt: number
  /** For one that was updated: its first author and time, and the authors of all its texts in order. */
  origin?: { author: string; acquiredAt: number; contributors: readonly string[] }
  /** When a member last repeated it, epoch milliseconds. */
  confirmedAt?: number
  /** As it was seeded; changes keep it. */
  metadata?: Metadata
  updatedAt: number
  tokens: number
  /** Rises with every change. */
  version: number
}

/** The document of an id: a memory, or the tombstone of a removed one. */
export type SharedMemoryState = {
  version: number
  /** The ids of the last writes that were applied, latest last. */
  marks: readonly string[]
  memory: SharedMemory | null
}

/** The partition of pending memories, which the review queue alone reads. No session can have this name. */
export const pendingPartition = '\u0000pending'

export const vaultFilter = ({ vault, epoch }: VaultEpoch): Filter<MemoryDocument> => ({
  vault: { $eq: vault },
  epoch: { $eq: epoch },
})

/** The filter of every shared memory that members may see; the beginning of other filters. */
export const sharedMemoryFilter = (scope: VaultEpoch): Filter<MemoryDocument> => ({
  ...vaultFilter(scope),
  session: { $eq: '' },
  tier: { $eq: 1 },
})

/** The projection of all fields but the vectors. */
export const sharedFields = projectionOf(
  'text tags confidence author reviewed session by_hand first_said contributors ' +
    'confirmed_at metadata at updated_at tokens version',
)

export function sharedMemoryFromDocument(document: MemoryDocument): SharedMemory {
  const { _id, text, tags = [], confidence = 0, author = '', reviewed = false } = document
  const { at, updated_at = at, tokens, version, by_hand: byHand = false } = document
  const { first_said: first, contributors = [], confirmed_at: confirmedAt, metadata } = document
  return {
    id: _id,
    text,
    tags,
    confidence,
    author,
    reviewed,
    ...(byHand && { byHand }),
    ...(document.session === pendingPartition && { pending: true }),
    acquiredAt: at.getTime(),
    ...(first && {
      origin: { author: first.author, acquiredAt: first.at.getTime(), contributors },
    }),
    ...(confirmedAt && { confirmedAt: confirmedAt.getTime() }),
    ...(metadata && { metadata: metadataFromTerms(metadata) }),
    updatedAt: updated_at.getTime(),
    tokens,
    version,
  }
}

/** Reads the document of an id; undefined when there never was one. */
export async function findSharedMemoryState(
  { memories }: MemoryCollection,
  { vault, epoch }: VaultEpoch,
  id: string,
): Promise<SharedMemoryState | undefined> {
  const document = await memories
    .findOne(
      { _id: { $eq: id }, vault: { $eq: vault } },
      {
        projection: { ...sharedFields, epoch: 1, marks: 1, tomb_at: 1 },
        hint: idIndex,
        signal: deadline(memories),
      },
    )
    .catch(refuseWhenUnreachable)
  if (!document) return undefined
  const isLive = document.tomb_at === undefined && document.epoch === epoch
  return {
    version: document.version,
    marks: document.marks ?? [],
    memory: isLive ? sharedMemoryFromDocument(document) : null,
  }
}

/**
 * Reads the memories of these ids, in no order.
 *
 * @param sessions also the pending ones, for an admin; those that members may see without it
 */
export async function sharedByIds(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  ids: readonly string[],
  sessions: readonly string[] = [''],
): Promise<SharedMemory[]> {
  if (ids.length === 0) return []
  const rows = await memories
    .find(
      { ...sharedMemoryFilter(scope), session: { $in: [...sessions] }, _id: { $in: [...ids] } },
      { projection: sharedFields, hint: idIndex, signal: deadline(memories) },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(sharedMemoryFromDocument)
}

/** Memories with a lower confidence wait for a person's review. */
export const reviewThreshold = 0.6
