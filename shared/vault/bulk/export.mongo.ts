import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

export type ExportSelection = {
  /** One session, or the core vault with null; undefined is the whole vault. */
  session: string | null | undefined
  /** The vault space whose vectors are exported. */
  space: string | undefined
}

/** The exported fields of a memory; `vectors` has at most the requested one. */
export type ExportedDocument = Omit<MemoryDocument, 'hash' | 'stored_at' | 'tokens' | 'version'>

/** A batch with vectors stays below 2 MB; without vectors larger batches are faster. */
const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams the memories of a vault in the order of the index `place`: core vault, then sessions; by tier,
 * time and id. The cursor is closed when the consumer stops early.
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
  metadata: 1,
  piece: 1,
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
