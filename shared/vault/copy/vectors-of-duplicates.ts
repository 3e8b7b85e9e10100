import type { VaultScope } from '#shared/domain/memory.ts'
import type { MemoryTextHash } from '#shared/vault/copy/copies.mongo.ts'
import { addVectors, textsWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

export const textHashKey = (hash: Uint8Array): string => Buffer.from(hash).toString('base64')

/**
 * Adds the vectors of copies to memories of the destination that have the same texts and no vector in that
 * space, so that a search finds these texts although they were not copied.
 *
 * @param again whether an earlier run may have added vectors; its ids are then returned as well
 * @returns the ids that indexes of the space have to read again
 */
export async function addVectorsToDuplicates(
  { mongo }: { mongo: Mongo },
  destination: Pick<VaultScope, 'vault' | 'epoch'>,
  space: string,
  {
    holders,
    copies,
    again,
  }: {
    holders: readonly MemoryTextHash[]
    copies: readonly { hash: Uint8Array; memory: { vector: Float32Array } }[]
    again: boolean
  },
): Promise<string[]> {
  if (holders.length === 0) return []
  const texts = new Map(holders.map(({ id, hash }) => [id, textHashKey(hash)]))
  const vectors = new Map(copies.map(({ hash, memory }) => [textHashKey(hash), memory.vector]))
  const withoutVector = await textsWithoutVector(mongo, destination, space, [...texts.keys()])
  await addVectors(
    mongo,
    destination,
    space,
    withoutVector.map(row => ({ ...row, vector: vectors.get(texts.get(row.id)!)! })),
  )
  return again ? [...texts.keys()] : withoutVector.map(({ id }) => id)
}
