import type { Filter } from 'mongodb'
import { untold } from '#shared/domain/feedback.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'

/** A part of a vault: a session vault or, with null, the core vault and the reflections. */
export type Partition = {
  session: string | null
  sessionEpoch: number
  /** For a shared vault: only memories with one of these tag sets. */
  tagSets?: readonly string[]
}

/** What may be told: all but what its owner has called wrong. No search index has the field. */
export const toldFilter = { feedback: { $nin: [...untold] } }

/** The filter of all told memories of one partition, in one space. */
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
    ...toldFilter,
    [`vectors.${space}`]: { $exists: true },
  }
}
