import { Binary, type Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { toBinaryVector, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { idIndex } from '#shared/storage/mongo/indexes.ts'
import {
  contentHash,
  withWriteTimeout,
  ignoreDuplicateKeys,
} from '#shared/vault/base/memories.mongo.ts'
import type { SharedMemory, SharedMemoryState } from '#shared/org/shared-memories.mongo.ts'
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

type SharedTagging = Pick<SharedMemory, 'id' | 'tags' | 'confidence' | 'reviewed' | 'byHand'>

/** As `replaceShared`, where the text stays: changes tags, confidence and review state, not vectors. */
export async function relabelShared(
  { memories }: Collections,
  scope: Scope,
  { id, tags, confidence, reviewed, byHand = false }: SharedTagging,
  step: WriteCondition,
): Promise<boolean> {
  const { version, marks } = nextVersion(step)
  const opinion = { confidence, reviewed, by_hand: byHand }
  const fields = { tags: sortUniqueTags(tags), tag_set: tagSetKey(tags), ...opinion }
  return wasWritten(
    memories.updateOne(
      unchangedFilter(scope, id, step),
      { $set: { ...fields, updated_at: new Date(), version, marks } },
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

function toSharedDocument(
  { vault, epoch }: Scope,
  content: SharedContent,
  { version, marks }: Pick<SharedMemoryState, 'version' | 'marks'>,
): MemoryDocument {
  const { id, text, tags, confidence, author, reviewed, byHand = false } = content
  const { acquiredAt, tokens, vectors } = content
  return {
    _id: id,
    vault,
    epoch,
    session: '',
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
    updated_at: new Date(),
    version,
    marks: [...marks],
  }
}
