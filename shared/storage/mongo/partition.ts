import type { Filter } from 'mongodb'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import { saidOrigins } from '#shared/domain/origin.ts'
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

/** The condition of a filter of metadata; in operators that a search index supports, but for origins. */
export const metadataCondition = (
  filter: MetadataFilter | undefined,
): { $and?: Filter<MemoryDocument>[] } =>
  filter
    ? {
        $and: filter.map(choices => {
          const given = { metadata: { $in: [...choices] } }
          const roles = choices.flatMap(choice => originConditions[choice] ?? [])
          return roles.length > 0 ? { $or: [given, ...roles] } : given
        }),
      }
    : {}

/** As `originOf`: rows of which metadata do not say it. */
const unsaid = { tier: 1 as const, metadata: { $nin: [...saidOrigins] } }
const originConditions: Record<string, Filter<MemoryDocument>[]> = {
  'origin="person"': [{ ...unsaid, role: 'user', tags: { $exists: false } }],
  'origin="model"': [
    { ...unsaid, role: 'assistant' },
    { ...unsaid, role: 'user', tags: { $exists: true } },
  ],
  'origin="program"': [{ ...unsaid, role: 'system' }],
  'origin="reflection"': [{ tier: { $gt: 1 } }],
  ...Object.fromEntries(
    (['right', ...untold] as const).map(feedback => [`feedback="${feedback}"`, [{ feedback }]]),
  ),
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
