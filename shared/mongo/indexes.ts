import type { Mongo } from '#shared/mongo/connect.ts'

/**
 * Release step: creates every index that is missing; existing ones are left alone.
 *
 * Loading an image, keyset pages, and everything by time go by one index: a vault's epoch, its core
 * or one session, in the order of the event.
 */
export async function createIndexes({ memories }: Pick<Mongo, 'memories'>): Promise<void> {
  await memories.createIndexes([
    { key: { vault: 1, epoch: 1, session: 1, tier: 1, at: 1, _id: 1 }, name: 'place' },
    { key: { vault: 1, hash: 1 }, name: 'content' },
  ])
}
