import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

export type ExportSelection = {
  /** One session, or the core vault with null; undefined is all of it. */
  session: string | null | undefined
  /** The vault space whose vectors come along. */
  space: string | undefined
}

/** What an export tells of a memory; its `vectors` holds at most the one that was asked for. */
export type ExportedDocument = Omit<MemoryDocument, 'hash' | 'stored_at' | 'tokens' | 'version'>

/** Few enough that a batch with vectors stays below 2 MB, many enough to be quick without. */
const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams what a vault holds in one stable order, that of the index `place`: core before sessions, tier
 * by tier, by time, by id. A reader that stops early closes the cursor.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* exportedDocuments(
  { memories }: Pick<Mongo, 'memories'>,
  { vault, epoch }: Pick<VaultScope, 'vault' | 'epoch'>,
  { session, space }: ExportSelection,
): AsyncGenerator<ExportedDocument> {
  const cursor = memories.find(
    {
      vault: { $eq: vault },
      epoch: { $eq: epoch },
      ...(session !== undefined && { session: { $eq: session ?? '' } }),
    },
    {
      projection: exportProjection(space),
      sort: { session: 1, tier: 1, at: 1, _id: 1 },
      hint: partitionIndex,
      batchSize: space === undefined ? batchSizes.without : batchSizes.withVectors,
    },
  )
  try {
    for await (const document of cursor) {
      if (document.tomb_at === undefined) yield { ...document, vectors: document.vectors ?? {} }
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  } finally {
    await cursor.close()
  }
}

const exportProjection = (space: string | undefined) => ({
  vault: 1,
  epoch: 1,
  session: 1,
  session_epoch: 1,
  tier: 1,
  role: 1,
  text: 1,
  at: 1,
  importance: 1,
  speaker: 1,
  operation: 1,
  consolidated: 1,
  batch: 1,
  sources: 1,
  covers: 1,
  consolidated_by: 1,
  provenance: 1,
  expires_at: 1,
  tomb_at: 1,
  ...(space !== undefined && { [`vectors.${space}`]: 1 }),
})
