import type { Mongo } from '#shared/storage/mongo/connect.ts'

/**
 * Every command names its index. All of them begin with the vault, and where several apply a server
 * tries them against each other; the embedded engine cannot when none of them finds anything among
 * the first ten thousand, and fails.
 */
export const idIndex = '_id_'
export const partitionIndex = 'place'
export const contentHashIndex = 'content'
export const unconsolidatedIndex = 'unconsolidated'
export const tagSetIndex = 'tags'
export const reviewIndex = 'review'
export const expiryIndex = 'expiring'
export const fileIndex = 'file'

/**
 * Release step: creates every missing index; existing ones are not changed.
 *
 * One index serves loading a vault index, keyset pages, and all reads by time: a vault's epoch, its
 * core or one session, in the order of the event. Unconsolidated memories have an index of their
 * own, which shrinks as they are consolidated; so have rated memories, for lists by importance. Reflections are found by their batch; shared memories by their tags,
 * and those that wait for review by their confidence. Memories that will expire have an index by
 * that moment, which holds no others; so have pieces of documents by their document.
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
    {
      key: { vault: 1, epoch: 1, 'file.id': 1 },
      name: fileIndex,
      partialFilterExpression: { 'file.id': { $exists: true } },
    },
  ])
}
