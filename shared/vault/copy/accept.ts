import type { Destination } from '#shared/vault/copy/destination.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { deferBilling } from '#shared/billing/deferred-bill.postgres.ts'
import { dropEndedCopies, insertCopy, type CopyChunk } from '#shared/vault/copy/copies.postgres.ts'
import {
  insertOperations,
  findOperationState,
  zeroUsage,
} from '#shared/operations/operations.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

export type NewCopy = {
  /** The UUIDv7 this copy is accepted under. */
  operation: string
  kind: 'transfer' | 'graft'
  destination: Destination
  /** Embedding model whose vector space the copies stand in; texts without a vector there get one. */
  model: string
  /** The memories to copy, oldest first. */
  ids: string[]
  /** Of a graft. */
  graftQuery: { queries: string[]; threshold: number } | null
  /** A request will wait for its outcome. */
  awaited: boolean
}

/** Memories a job copies: 3 MB of vectors at 1,536 dimensions, and 0.1 s under the destination's lock. */
const chunkMemories = 500

/**
 * Promises a copy: what is copied is settled now, and operation, plan and jobs are written in one
 * transaction. Accepting the same operation again changes nothing. It is billed when it ends, for what
 * it copied.
 */
export async function acceptCopy(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  caller: Caller,
  copy: NewCopy,
): Promise<void> {
  const { operation, kind, destination, model, graftQuery, awaited } = copy
  const { account, keyHash, scope, maskedKey } = caller
  const chunks = splitIntoCopyChunks(copy.ids)
  await dropEndedCopies(postgres.query)
  await postgres.transaction(async tx => {
    if ((await findOperationState(tx.query, account, operation)) !== undefined) return
    const [accepted] = await insertOperations(tx, [
      {
        id: operation,
        account,
        vault: scope.vault,
        keyHash,
        kind,
        awaited,
        session: null,
        total: chunks.length,
        ...zeroUsage,
      },
    ])
    await deferBilling(tx.query, operation)
    await insertCopy(
      tx.query,
      {
        operation,
        source: scope.vault,
        sourceEpoch: scope.epoch,
        sourceKey: maskedKey,
        destination: destination.vault,
        destinationEpoch: destination.epoch,
        destinationHash: destination.keyHash,
        destinationKey: destination.key,
        model,
        queries: graftQuery?.queries ?? null,
        threshold: graftQuery?.threshold ?? null,
      },
      chunks,
    )
    const jobs = chunks.map(({ n }) => ({
      id: memoryIdOf(operation, n),
      data: { operation, n },
      priority: -accepted!.pending,
    }))
    await queue.send(tx, 'copy-chunk', jobs)
  })
}

/** A copy of nothing has one empty chunk: somebody must say how it ended. */
function splitIntoCopyChunks(ids: readonly string[]): CopyChunk[] {
  const chunks: CopyChunk[] = []
  for (let first = 0; first < Math.max(1, ids.length); first += chunkMemories) {
    chunks.push({ n: chunks.length, first, ids: ids.slice(first, first + chunkMemories) })
  }
  return chunks
}
