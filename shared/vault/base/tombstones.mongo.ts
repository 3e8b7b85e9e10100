import type { Feedback } from '#shared/domain/feedback.ts'
import type { Tier } from '#shared/domain/memory.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import {
  findDocuments,
  acknowledged,
  epochFilter,
  idsFilter,
} from '#shared/storage/mongo/commands.ts'

/** The fields of a deleted memory that bill, debt and change log need. */
export type TombstonedMemory = {
  id: string
  session: string | null
  tier: Tier
  tokens: number
  importance: number
  consolidated: boolean
  feedback: Feedback | undefined
  /** The hash of its text; undefined for one that was never stored. */
  hash: Uint8Array | undefined
  /** The id of the document that it was a piece of. */
  document: string | undefined
}

type TombstoneScope = Pick<DeleteIdsJob, 'operation' | 'vault' | 'epoch' | 'overAt'>

/** Those of the given ids that exist at this epoch of the vault, in its core or in any session. */
export async function findLiveMemories(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<TombstoneScope, 'vault' | 'epoch'>,
  ids: readonly string[],
): Promise<{ id: string; session: string | null; sessionEpoch: number }[]> {
  const filter = idsFilter(scope, ids)
  const rows = await findDocuments(memories, filter, {
    projection: { session: 1, session_epoch: 1 },
    hint: idIndex,
  })
  return rows.map(({ _id, session, session_epoch }) => ({
    id: _id,
    session: session || null,
    sessionEpoch: session_epoch,
  }))
}

/**
 * Replaces memories by tombstones: text, vectors and epoch go in one write, the id stays taken. Until
 * `finalizeTombstones` a tombstone keeps what the operation needs to finalize, so that a second run finalizes
 * the same. Existing tombstones stay as they are.
 */
export async function tombstone(
  { memories }: Pick<Mongo, 'memories'>,
  { operation, vault, epoch, overAt }: TombstoneScope,
  ids: readonly string[],
  {
    committingBatches,
    unsettledDeletions,
  }: {
    /** Being committed: memories they have marked still count in the debt, and they will not subtract them. */
    committingBatches: readonly string[]
    /** Memories they have released do not count in the debt, and they will not add them. */
    unsettledDeletions: readonly string[]
  },
): Promise<void> {
  const marked = {
    $setIntersection: [{ $ifNull: ['$consolidated_by', []] }, [...committingBatches]],
  }
  const tombstoneFields = {
    ...bareTombstone,
    tomb_epoch: '$epoch',
    tomb_by: { $literal: operation },
    session: '$session',
    tier: '$tier',
    tokens: '$tokens',
    importance: '$importance',
    hash: '$hash',
    file: '$file',
    consolidated: {
      $or: [
        { $and: ['$consolidated', { $eq: [{ $size: marked }, 0] }] },
        { $in: [{ $ifNull: ['$released_by', null] }, [...unsettledDeletions]] },
      ],
    },
    batch: '$batch',
    feedback: '$feedback',
    sources: '$sources',
  }
  await acknowledged(
    memories.updateMany(
      {
        ...epochFilter({ vault, epoch }),
        _id: { $in: [...ids] },
        ...(overAt !== undefined && { expires_at: { $lte: new Date(overAt) } }),
      },
      [{ $replaceRoot: { newRoot: { ...tombstoneFields, tomb_at: '$$NOW' } } }],
      { hint: idIndex },
    ),
  )
}

/** The tombstones of an operation that are not finalized. */
export async function findTombstonedBy(
  { memories }: Pick<Mongo, 'memories'>,
  { operation, vault }: TombstoneScope,
  ids: readonly string[],
): Promise<TombstonedMemory[]> {
  const filter = { vault: { $eq: vault }, tomb_by: { $eq: operation }, _id: { $in: [...ids] } }
  const rows = await findDocuments(memories, filter, { hint: idIndex })
  return rows.map(toTombstonedMemory)
}

/** Reduces an operation's tombstones to the taken ids and their time. */
export async function finalizeTombstones(
  { memories }: Pick<Mongo, 'memories'>,
  { operation, vault }: TombstoneScope,
  ids: readonly string[],
): Promise<void> {
  await acknowledged(
    memories.updateMany(
      { vault: { $eq: vault }, tomb_by: { $eq: operation }, _id: { $in: [...ids] } },
      [
        {
          $replaceRoot: {
            newRoot: { ...bareTombstone, tomb_epoch: '$tomb_epoch', tomb_at: '$tomb_at' },
          },
        },
      ],
      { hint: idIndex },
    ),
  )
}

/** A tombstone stays its vault's: only that vault's work may find the id taken. */
const bareTombstone = { _id: '$_id', vault: '$vault' }

function toTombstonedMemory(document: MemoryDocument): TombstonedMemory {
  const { _id, session, tier, tokens, importance = 0, consolidated, feedback } = document
  const { hash, file } = document as Partial<MemoryDocument>
  return {
    id: _id,
    session: session || null,
    tier,
    tokens,
    importance,
    consolidated,
    feedback,
    hash: hash?.buffer,
    document: file?.id,
  }
}
