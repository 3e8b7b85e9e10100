import type { VaultScope } from '#shared/domain/memory.ts'
import type { MemoryTextHash } from '#shared/vault/copy/copies.mongo.ts'
import { addVectors, textsWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** The same for texts that are the same. */
export const textHashKey = (hash: Uint8Array): string => Buffer.from(hash).toString('base64')

/**
 * Gives memories of a destination that have a text already the vector of its copy, where they have none
 * in that space: copied or not, what was asked for can be found there.
 *
 * @param again also names those that an earlier run may have given theirs.
 * @returns the ids that images of the space have to read again.
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
  const bare = await textsWithoutVector(mongo, destination, space, [...texts.keys()])
  await addVectors(
    mongo,
    destination,
    space,
    bare.map(row => ({ ...row, vector: vectors.get(texts.get(row.id)!)! })),
  )
  return again ? [...texts.keys()] : bare.map(({ id }) => id)
}
