import { Binary, type Document, type UpdateFilter } from 'mongodb'
import { metadataTerms } from '#shared/domain/metadata.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type MemoryCollection } from '#shared/storage/mongo/connect.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import { contentHash, ignoreDuplicateKeys } from '#shared/vault/base/memories.mongo.ts'
import {
  pendingPartition,
  type SharedMemory,
  type SharedMemoryState,
  vaultFilter,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { tagSetKey, sortUniqueTags } from '#shared/domain/tags.ts'
import { withWriteTimeout } from '#shared/storage/mongo/commands.ts'

/** The new content of a document; vectors by vault space. */
export type SharedContent = Omit<SharedMemory, 'version' | 'updatedAt'> & {
  vectors: Readonly<Record<string, Float32Array>>
}

/** The most marks that a document keeps: each write finalizes those before it. */
const marksMax = 20

/** A message to the server holds so many texts of any length with their vectors. */
const insertMax = 100

/** Inserts new memories, journaled; a document whose id is taken stays as it is. */
export async function insertShared(
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  added: readonly { content: SharedContent; mark: string }[],
): Promise<void> {
  for (let start = 0; start < added.length; start += insertMax) {
    const documents = added
      .slice(start, start + insertMax)
      .map(({ content, mark }) => toSharedDocument(scope, content, { version: 1, marks: [mark] }))
    await withWriteTimeout(memories.insertMany(documents, { ordered: false })).catch(
      ignoreDuplicateKeys,
    )
  }
}

type WriteCondition = { current: SharedMemoryState; mark: string }

/**
 * Replaces the content of a document, of a tombstone too, in one journaled write.
 *
 * @returns false, with nothing written, when the document has changed since it was read.
 */
export const replaceShared = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  content: SharedContent,
  step: WriteCondition,
): Promise<boolean> => {
  const document = toSharedDocument(scope, content, nextVersion(step))
  return writeIfUnchanged(memories, scope, content.id, step, [
    { $replaceWith: { $literal: document } },
  ])
}

/** As `replaceShared`, where text and vectors stay: changes tags, confidence, review state and authors. */
export const relabelShared = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  content: Omit<SharedContent, 'vectors'>,
  step: WriteCondition,
): Promise<boolean> =>
  writeIfUnchanged(memories, scope, content.id, step, {
    $set: { ...toTaggingFields(content), by_hand: content.byHand ?? false, ...nextVersion(step) },
    ...(!content.origin && { $unset: { first_said: true, contributors: true } }),
  })

/** Turns a memory into a tombstone: one write removes text, tags and vectors; the id stays taken. */
export const tombstoneShared = (
  { memories }: MemoryCollection,
  { vault, epoch }: VaultEpoch,
  id: string,
  step: WriteCondition,
): Promise<boolean> => {
  const tombstone = { _id: id, vault, ...nextVersion(step), tomb_at: new Date(), tomb_epoch: epoch }
  return writeIfUnchanged(memories, { vault }, id, step, [
    { $replaceWith: { $literal: tombstone } },
  ])
}

/**
 * Records when a member last repeated a memory. This is no change of the memory: the latest time stays, in whatever
 * order this runs.
 *
 * @returns false when the memory is gone.
 */
export const confirmShared = (
  { memories }: MemoryCollection,
  scope: VaultEpoch,
  id: string,
  saidAt: number,
): Promise<boolean> =>
  wasWritten(
    memories.updateOne(
      { _id: { $eq: id }, ...vaultFilter(scope) },
      { $max: { confirmed_at: new Date(saidAt) } },
      { hint: idIndex },
    ),
  )

/** Writes a document only as it was read, and only without the mark of this write. */
const writeIfUnchanged = (
  memories: MemoryCollection['memories'],
  { vault }: Pick<VaultEpoch, 'vault'>,
  id: string,
  { current: { version }, mark }: WriteCondition,
  update: UpdateFilter<MemoryDocument> | Document[],
): Promise<boolean> =>
  wasWritten(
    memories.updateOne(
      {
        _id: { $eq: id },
        vault: { $eq: vault },
        version: { $eq: version },
        marks: { $ne: mark },
      },
      update,
      { hint: idIndex },
    ),
  )

async function wasWritten(writing: Promise<{ matchedCount: number }>): Promise<boolean> {
  const { matchedCount } = await withWriteTimeout(writing).catch(refuseWhenUnreachable)
  return matchedCount === 1
}

const nextVersion = ({ current, mark }: WriteCondition) => ({
  version: current.version + 1,
  marks: [...current.marks, mark].slice(-marksMax),
})

/** The fields that change with tags, opinion and authors. */
const toTaggingFields = (content: Omit<SharedContent, 'vectors'>) => ({
  session: content.pending ? pendingPartition : '',
  tags: sortUniqueTags(content.tags),
  tag_set: tagSetKey(content.tags),
  confidence: content.confidence,
  reviewed: content.reviewed,
  author: content.author,
  at: new Date(content.acquiredAt),
  ...(content.origin && {
    first_said: { author: content.origin.author, at: new Date(content.origin.acquiredAt) },
    contributors: [...content.origin.contributors],
  }),
  updated_at: new Date(),
})

function toSharedDocument(
  { vault, epoch }: VaultEpoch,
  content: SharedContent,
  { version, marks }: Pick<SharedMemoryState, 'version' | 'marks'>,
): MemoryDocument {
  const { id, text, byHand, confirmedAt, metadata, tokens, vectors } = content
  return {
    _id: id,
    vault,
    epoch,
    session_epoch: 0,
    tier: 1,
    role: 'user',
    text,
    hash: new Binary(contentHash(text)),
    stored_at: new Date(),
    tokens,
    operation: marks.at(-1)!,
    vectors: Object.fromEntries(
      Object.entries(vectors).map(([space, vector]) => [space, toBinaryVector(vector)]),
    ),
    // Shared memories are not consolidated: they count as no debt.
    consolidated: true,
    ...toTaggingFields(content),
    ...(byHand && { by_hand: byHand }),
    ...(confirmedAt !== undefined && { confirmed_at: new Date(confirmedAt) }),
    ...(metadata && { metadata: metadataTerms(metadata) }),
    version,
    marks: [...marks],
  }
}
