import { untold, type Feedback } from '#shared/domain/feedback.ts'
import type { VaultEpoch } from '#shared/domain/memory.ts'
import type { Condition } from '#shared/domain/condition.ts'
import {
  acknowledged,
  epochFilter,
  findDocument,
  findDocuments,
  idBatches,
  idsFilter,
} from '#shared/storage/mongo/commands.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { contentHashIndex, idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'

type Memories = Pick<Mongo, 'memories'>

/** A memory as its feedback changes the debt. */
export type JudgedMemory = Pick<
  MemoryDocument,
  'tier' | 'tokens' | 'importance' | 'consolidated' | 'consolidated_by' | 'feedback'
> & { id: string; session: string | null; sessionEpoch: number }

const projection = {
  session: 1,
  session_epoch: 1,
  tier: 1,
  tokens: 1,
  importance: 1,
  consolidated: 1,
  consolidated_by: 1,
  feedback: 1,
} as const

const toJudged = (document: MemoryDocument): JudgedMemory => ({
  ...document,
  id: document._id,
  session: document.session || null,
  sessionEpoch: document.session_epoch,
})

/** Those of the ids that exist at this epoch of the vault, in its core or in any session. */
export const findJudged = async (
  { memories }: Memories,
  scope: VaultEpoch,
  ids: readonly string[],
): Promise<JudgedMemory[]> =>
  (await findDocuments(memories, idsFilter(scope, ids), { projection, hint: idIndex })).map(
    toJudged,
  )

/** Those of the ids that exist, and the ids of at most `max` memories of the vault with the text of one of them. */
export async function idsWithTextsOf(
  { memories }: Memories,
  scope: VaultEpoch,
  ids: readonly string[],
  max: number,
): Promise<string[]> {
  const fields = { projection: { hash: 1 }, hint: idIndex }
  const named = await findDocuments(memories, idsFilter(scope, ids), fields)
  const same = { ...epochFilter(scope), hash: { $in: named.map(({ hash }) => hash) } }
  const options = { projection: { _id: 1 }, hint: contentHashIndex, limit: max }
  const copies = await findDocuments(memories, same, options)
  return [...new Set([...named, ...copies].map(({ _id }) => _id))]
}

/**
 * The ids of at most `max` memories that meet a condition and that a feedback would change, sessions included. `right` changes
 * those alone that are told no more.
 */
export async function idsToJudge(
  { memories }: Memories,
  scope: VaultEpoch,
  { condition, feedback, max }: { condition: Condition; feedback: Feedback; max: number },
): Promise<string[]> {
  const open = feedback === 'right' ? { $in: [...untold] } : { $ne: feedback }
  const wanted = { ...epochFilter(scope), ...conditionFilter(condition), feedback: open }
  const options = { projection: { _id: 1 }, hint: partitionIndex, limit: max }
  return (await findDocuments(memories, wanted, options)).map(({ _id }) => _id)
}

/** Writes a feedback of memories, journaled. */
export const setFeedback = (
  { memories }: Memories,
  scope: VaultEpoch,
  ids: readonly string[],
  feedback: Feedback,
): Promise<unknown> =>
  acknowledged(
    memories.updateMany(
      idsFilter(scope, ids),
      { $set: { feedback }, $inc: { version: 1 } },
      { hint: idIndex },
    ),
  )

/** The reflections of the core that were made of some memories. */
export const reflectionsMadeOf = async (
  { memories }: Memories,
  scope: VaultEpoch,
  sources: readonly JudgedMemory[],
): Promise<MemoryDocument[]> => {
  const batches = sources.flatMap(({ consolidated_by: by = [] }) => by)
  if (batches.length === 0) return []
  const filter = { ...epochFilter(scope), batch: { $in: batches } }
  const fields = { _id: 1, batch: 1, sources: 1 }
  return findDocuments(memories, filter, { projection: fields, hint: 'lineage' })
}

/** Notes in the metadata of reflections whether a source of theirs is told no more. */
export async function noteUntoldSources(
  { memories }: Memories,
  scope: VaultEpoch,
  reflections: readonly MemoryDocument[],
): Promise<void> {
  for (const rows of Map.groupBy(reflections, ({ batch }) => batch).values()) {
    let isUntold = false
    for (const ids of idBatches(rows[0]!.sources ?? [])) {
      const judged = { ...idsFilter(scope, ids), feedback: { $in: [...untold] } }
      isUntold ||= (await findDocument(memories, judged, { hint: idIndex })) !== null
    }
    const ids = rows.map(({ _id }) => _id)
    const note = { metadata: 'made_of_untold=true' }
    const change = { ...(isUntold ? { $addToSet: note } : { $pull: note }), $inc: { version: 1 } }
    await acknowledged(memories.updateMany(idsFilter(scope, ids), change, { hint: idIndex }))
  }
}
