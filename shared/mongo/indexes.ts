import type { Mongo } from '#shared/mongo/connect.ts'

/**
 * Release step: creates every index that is missing; existing ones are left alone.
 *
 * Loading an image, keyset pages, and everything by time go by one index: a vault's epoch, its core
 * or one session, in the order of the event. What waits for consolidation has an index of its own that
 * shrinks as it is worked off; what is rated has two, since lists by importance run with and against
 * time. Reflections are found by the batch they came out of.
 */
export async function createIndexes({ memories }: Pick<Mongo, 'memories'>): Promise<void> {
  await memories.createIndexes([
    { key: { vault: 1, epoch: 1, session: 1, tier: 1, at: 1, _id: 1 }, name: 'place' },
    { key: { vault: 1, hash: 1 }, name: 'content' },
    {
      key: { vault: 1, epoch: 1, tier: 1, at: 1, _id: 1 },
      name: 'unconsolidated',
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
  ])
}
