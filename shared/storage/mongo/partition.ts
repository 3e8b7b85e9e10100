import type { Filter } from 'mongodb'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

/** Which part of a vault: a session vault, or with null the core vault and the reflections. */
export type Partition = {
  session: string | null
  sessionEpoch: number
  /** Of a shared vault: only memories that bear one of these sets of tags. */
  tagSets?: readonly string[]
}

/** The filter of everything that can be seen in one place of a vault, in one space. */
export function partitionFilter(
  scope: VaultScope,
  partition: Partition,
  space: string,
): Filter<MemoryDocument> {
  return {
    vault: { $eq: scope.vault },
    epoch: { $eq: scope.epoch },
    session: { $eq: partition.session ?? '' },
    session_epoch: { $eq: partition.sessionEpoch },
    ...(partition.tagSets && { tag_set: { $in: [...partition.tagSets] } }),
    [`vectors.${space}`]: { $exists: true },
  }
}
