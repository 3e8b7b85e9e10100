import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

/** The vault spaces of the first memory of a vault, in the order of the index: as a rule its oldest one. */
export async function spacesOfOldest(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
): Promise<string[]> {
  const [row] = await memories
    .find(
      { vault: { $eq: vault }, epoch: { $eq: epoch } },
      { projection: { vectors: 1 }, hint: partitionIndex, signal: deadline(memories), limit: 1 },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return Object.keys(row?.vectors ?? {})
}
