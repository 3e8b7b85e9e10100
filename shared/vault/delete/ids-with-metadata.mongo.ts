import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { metadataCondition } from '#shared/storage/mongo/partition.ts'

/**
 * The ids of memories with such metadata, of the core vault and of sessions, the earliest first in each.
 *
 * @param max the most ids
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function idsWithMetadata(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  filter: MetadataFilter,
  max: number,
): Promise<string[]> {
  const rows = await memories
    .find(
      { vault: { $eq: vault }, epoch: { $eq: epoch }, ...metadataCondition(filter) },
      {
        projection: { _id: 1 },
        hint: partitionIndex,
        limit: max,
        signal: deadline(memories),
      },
    )
    .toArray()
    .catch(refuseWhenUnreachable)
  return rows.map(({ _id }) => _id)
}
