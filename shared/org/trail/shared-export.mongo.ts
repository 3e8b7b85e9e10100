import type { VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'
import {
  pendingPartition,
  sharedFields,
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'

/** A shared memory with the operation that made it, and its vector of the requested space. */
export type ExportedShared = SharedMemory & { operation: string; vector: Float32Array | undefined }

/** As `exportedDocuments` reads. */
const batchSizes = { withVectors: 100, without: 500 }

/**
 * Streams the shared memories of an organization, oldest first, in the order of one index. A reader that
 * stops early closes the cursor.
 *
 * @param space whose vectors are included
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function* exportedShared(
  { memories }: Pick<Mongo, 'memories'>,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  space: string | undefined,
): AsyncGenerator<ExportedShared> {
  const filter = { ...sharedMemoryFilter(scope), session: { $in: ['', pendingPartition] } }
  const cursor = memories.find(filter, {
    projection: {
      ...sharedFields,
      operation: 1,
      ...(space !== undefined && { [`vectors.${space}`]: 1 }),
    },
    sort: { at: 1, _id: 1 },
    hint: partitionIndex,
    batchSize: space === undefined ? batchSizes.without : batchSizes.withVectors,
  })
  try {
    for await (const document of cursor) {
      const { operation, vectors } = document
      const vector = space === undefined ? undefined : vectors[space]?.toFloat32Array()
      yield { ...sharedMemoryFromDocument(document), operation, vector }
    }
  } catch (error) {
    refuseWhenUnreachable(error)
  } finally {
    await cursor.close()
  }
}
