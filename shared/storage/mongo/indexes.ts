import type { Mongo } from '#shared/storage/mongo/connect.ts'

/**
 * The index a command goes by is always named. They all begin with the vault, and where several may do
 * a server tries them out against each other; the embedded engine cannot where none of them finds
 * anything among the first ten thousand, and fails.
 */
export const idIndex = '_id_'
export const partitionIndex = 'place'
export const contentHashIndex = 'content'
export const unconsolidatedIndex = 'unconsolidated'
export const tagSetIndex = 'tags'
export const reviewIndex = 'review'
export const expiryIndex = 'expiring'

/**
 * Release step: creates every index that is missing; existing ones are left alone.
 *
 * Loading an image, keyset pages, and everything by time go by one index: a vault's epoch, its core
 * or one session, in the order of the event. What waits for consolidation has an index of its own that
 * shrinks as it is worked off; what is rated has two, since lists by importance run with and against
 * time. Reflections are found by the batch they came out of. Of what organizations share, what some may
 * see is found by its tags, and what a person has yet to review by how sure it is. Memories that will be
 * over are in one by that moment, and no others.
 */
export async function createIndexes({ memories }: Pick<Mongo, 'memories'>): Promise<void> {
  await memories.createIndexes([
    { key: { vault: 1, epoch: 1, session: 1, tier: 1, at: 1, _id: 1 }, name: partitionIndex },
    { key: { vault: 1, hash: 1 }, name: contentHashIndex },
    {
      key: { vault: 1, epoch: 1, tier: 1, at: 1, _id: 1 },
      name: unconsolidatedIndex,
      partialFilterExpression: { consolidated: false, session: '' },
    },
    {
      key: { vault: 1, epoch: 1, importance: -1, at: -1, _id: -1 },
      name: 'rated',
      partialFilterExpression: { importance: { $gt: 0 } },
    },
    {
      key: { vault: 1, epoch: 1, importance: -1, at: 1, _id: 1 },
      name: 'rated-oldest',
      partialFilterExpression: { importance: { $gt: 0 } },
    },
    {
      key: { vault: 1, epoch: 1, batch: 1 },
      name: 'lineage',
      partialFilterExpression: { batch: { $exists: true } },
    },
    {
      key: { vault: 1, epoch: 1, tag_set: 1, at: -1 },
      name: tagSetIndex,
      partialFilterExpression: { tag_set: { $exists: true } },
    },
    {
      key: { vault: 1, epoch: 1, confidence: 1, at: -1, _id: -1 },
      name: reviewIndex,
      partialFilterExpression: { reviewed: false },
    },
    {
      key: { vault: 1, epoch: 1, expires_at: 1 },
      name: expiryIndex,
      partialFilterExpression: { expires_at: { $exists: true } },
    },
  ])
}
