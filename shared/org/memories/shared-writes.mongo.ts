import { Binary, type Filter } from 'mongodb'
import { metadataTerms } from '#shared/domain/metadata.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import {
  contentHash,
  withWriteTimeout,
  ignoreDuplicateKeys,
} from '#shared/vault/base/memories.mongo.ts'
import {
  pendingPartition,
  type MemoryOrigin,
  type SharedMemory,
  type SharedMemoryState,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { tagSetKey, sortUniqueTags } from '#shared/domain/tags.ts'

type Collections = Pick<Mongo, 'memories'>
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/** The new content of a document; vectors by vault space. */
export type SharedContent = Omit<SharedMemory, 'version' | 'updatedAt'> & {
  vectors: Readonly<Record<string, Float32Array>>
}

/** Marks kept of a document: each write finalizes those before it, so a few are enough. */
const marksMax = 20

/** The server takes messages of some megabytes; 100 texts of any length with their vectors fit. */
const insertMax = 100

/** Stores new memories, journaled; one whose id is taken is left as it is. */
export async function insertShared(
  { memories }: Collections,
  scope: Scope,
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
export async function replaceShared(
  { memories }: Collections,
  scope: Scope,
  content: SharedContent,
  step: WriteCondition,
): Promise<boolean> {
  const document = toSharedDocument(scope, content, nextVersion(step))
  return wasWritten(
    memories.updateOne(
      unchangedFilter(scope, content.id, step),
      [{ $replaceWith: { $literal: document } }],
      { hint: idIndex },
    ),
  )
}

/** As `replaceShared`, where text and vectors stay: changes tags, confidence, review state and authors. */
export async function relabelShared(
  { memories }: Collections,
  scope: Scope,
  content: Omit<SharedContent, 'vectors'>,
  step: WriteCondition,
): Promise<boolean> {
  const { id, tags, confidence, reviewed, byHand = false, pending = false } = content
  const { author, acquiredAt, origin } = content
  const { version, marks } = nextVersion(step)
  const opinion = { confidence, reviewed, by_hand: byHand, session: partitionOf(pending) }
  const fields = { tags: sortUniqueTags(tags), tag_set: tagSetKey(tags), ...opinion }
  return wasWritten(
    memories.updateOne(
      unchangedFilter(scope, id, step),
      {
        $set: {
          ...fields,
          author,
          at: new Date(acquiredAt),
          ...(origin && toOriginFields(origin)),
          updated_at: new Date(),
          version,
          marks,
        },
        ...(!origin && { $unset: { first_said: true, contributors: true } }),
      },
      { hint: idIndex },
    ),
  )
}

/**
 * Records that a member said again, at this time, what a memory says. Not a change of the memory: the
 * latest time stays, however often and in whatever order this runs.
 *
 * @returns false when the memory is gone.
 */
export async function confirmShared(
  { memories }: Collections,
  { vault, epoch }: Scope,
  id: string,
  saidAt: number,
): Promise<boolean> {
  return wasWritten(
    memories.updateOne(
      { _id: { $eq: id }, vault: { $eq: vault }, epoch: { $eq: epoch } },
      { $max: { confirmed_at: new Date(saidAt) } },
      { hint: idIndex },
    ),
  )
}

/** Turns a memory into a tombstone: one write removes text, tags and vectors; the id stays taken. */
export async function tombstoneShared(
  { memories }: Collections,
  scope: Scope,
  id: string,
  step: WriteCondition,
): Promise<boolean> {
  const idFields = { _id: id, vault: scope.vault, ...nextVersion(step) }
  const tombstoneFields = { tomb_at: new Date(), tomb_epoch: scope.epoch }
  return wasWritten(
    memories.updateOne(
      unchangedFilter(scope, id, step),
      [{ $replaceWith: { $literal: { ...idFields, ...tombstoneFields } } }],
      { hint: idIndex },
    ),
  )
}

const partitionOf = (pending: boolean): string => (pending ? pendingPartition : '')

/** Matches the document only as it was read, and only without the mark of this write. */
const unchangedFilter = (
  { vault }: Scope,
  id: string,
  { current: { version }, mark }: WriteCondition,
): Filter<MemoryDocument> => ({
  _id: { $eq: id },
  vault: { $eq: vault },
  version: { $eq: version },
  marks: { $ne: mark },
})

const nextVersion = ({ current, mark }: WriteCondition) => ({
  version: current.version + 1,
  marks: [...current.marks, mark].slice(-marksMax),
})

async function wasWritten(writing: Promise<{ matchedCount: number }>): Promise<boolean> {
  const { matchedCount } = await withWriteTimeout(writing).catch(refuseWhenUnreachable)
  return matchedCount === 1
}

const toOriginFields = ({ author, acquiredAt, contributors }: MemoryOrigin) => ({
  first_said: { author, at: new Date(acquiredAt) },
  contributors: [...contributors],
})

function toSharedDocument(
  { vault, epoch }: Scope,
  content: SharedContent,
  { version, marks }: Pick<SharedMemoryState, 'version' | 'marks'>,
): MemoryDocument {
  const { id, text, tags, confidence, author, reviewed, byHand = false, pending = false } = content
  const { acquiredAt, origin, confirmedAt, metadata, tokens, vectors } = content
  return {
    _id: id,
    vault,
    epoch,
    session: partitionOf(pending),
    session_epoch: 0,
    tier: 1,
    role: 'user',
    text,
    hash: new Binary(contentHash(text)),
    at: new Date(acquiredAt),
    stored_at: new Date(),
    tokens,
    operation: marks.at(-1)!,
    vectors: Object.fromEntries(
      Object.entries(vectors).map(([space, vector]) => [space, toBinaryVector(vector)]),
    ),
    // Shared memories are not consolidated: they count as no debt.
    consolidated: true,
    tags: sortUniqueTags(tags),
    tag_set: tagSetKey(tags),
    confidence,
    author,
    reviewed,
    ...(byHand && { by_hand: byHand }),
    ...(origin && toOriginFields(origin)),
    ...(confirmedAt !== undefined && { confirmed_at: new Date(confirmedAt) }),
    ...(metadata && { metadata: metadataTerms(metadata) }),
    updated_at: new Date(),
    version,
    marks: [...marks],
  }
}
