import { Binary, type Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { vectorOf, type MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { byId } from '#shared/storage/mongo/indexes.ts'
import { contentHash, inTime, toleratingDuplicates } from '#shared/vault/base/memories.mongo.ts'
import type { SharedMemory, Standing } from '#shared/org/shared-memories.mongo.ts'
import { tagSetOf, tagsOf } from '#shared/domain/tags.ts'

type Collections = Pick<Mongo, 'memories'>
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/** What a document is to become; its vectors by vault space. */
export type SharedContent = Omit<SharedMemory, 'version' | 'updatedAt'> & {
  vectors: Readonly<Record<string, Float32Array>>
}

/** Enough that a write is known by its mark until it is settled: each settles those before it. */
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
      .map(({ content, mark }) => documentOf(scope, content, { version: 1, marks: [mark] }))
    await inTime(memories.insertMany(documents, { ordered: false })).catch(toleratingDuplicates)
  }
}

type Step = { standing: Standing; mark: string }

/**
 * Puts content in the place of what stands there, a removed memory included, in one write, journaled.
 *
 * @returns false, with nothing written, when that is not any more what stands there.
 */
export async function replaceShared(
  { memories }: Collections,
  scope: Scope,
  content: SharedContent,
  step: Step,
): Promise<boolean> {
  const document = documentOf(scope, content, after(step))
  return written(
    memories.updateOne(
      unchanged(scope, content.id, step),
      [{ $replaceWith: { $literal: document } }],
      { hint: byId },
    ),
  )
}

type SharedOpinion = Pick<SharedMemory, 'id' | 'tags' | 'confidence' | 'reviewed' | 'byHand'>

/** The same for what stays of the text: new tags, another opinion of them. Vectors are left alone. */
export async function relabelShared(
  { memories }: Collections,
  scope: Scope,
  { id, tags, confidence, reviewed, byHand = false }: SharedOpinion,
  step: Step,
): Promise<boolean> {
  const { version, marks } = after(step)
  const opinion = { confidence, reviewed, by_hand: byHand }
  const fields = { tags: tagsOf(tags), tag_set: tagSetOf(tags), ...opinion }
  return written(
    memories.updateOne(
      unchanged(scope, id, step),
      { $set: { ...fields, updated_at: new Date(), version, marks } },
      { hint: byId },
    ),
  )
}

/** Leaves a tombstone: text, tags and vectors are gone in one write, the id stays taken. */
export async function buryShared(
  { memories }: Collections,
  scope: Scope,
  id: string,
  step: Step,
): Promise<boolean> {
  const grave = { _id: id, vault: scope.vault, ...after(step) }
  const tomb = { tomb_at: new Date(), tomb_epoch: scope.epoch }
  return written(
    memories.updateOne(
      unchanged(scope, id, step),
      [{ $replaceWith: { $literal: { ...grave, ...tomb } } }],
      { hint: byId },
    ),
  )
}

/** Only what nobody has changed since it was read; and no write comes about twice. */
const unchanged = (
  { vault }: Scope,
  id: string,
  { standing: { version }, mark }: Step,
): Filter<MemoryDocument> => ({
  _id: { $eq: id },
  vault: { $eq: vault },
  version: { $eq: version },
  marks: { $ne: mark },
})

const after = ({ standing, mark }: Step) => ({
  version: standing.version + 1,
  marks: [...standing.marks, mark].slice(-marksMax),
})

async function written(writing: Promise<{ matchedCount: number }>): Promise<boolean> {
  const { matchedCount } = await inTime(writing).catch(refuseWhenUnreachable)
  return matchedCount === 1
}

function documentOf(
  { vault, epoch }: Scope,
  content: SharedContent,
  { version, marks }: Pick<Standing, 'version' | 'marks'>,
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
      Object.entries(vectors).map(([space, vector]) => [space, vectorOf(vector)]),
    ),
    // A reflection of a team is nobody's: nothing here waits for one.
    consolidated: true,
    tags: tagsOf(tags),
    tag_set: tagSetOf(tags),
    confidence,
    author,
    reviewed,
    ...(byHand && { by_hand: byHand }),
    updated_at: new Date(),
    version,
    marks: [...marks],
  }
}
