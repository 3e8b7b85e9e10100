import { createHash } from 'node:crypto'
import type { BulkFileKind } from '#shared/domain/file-types.ts'
import type { LineLimits } from '#shared/vault/bulk/split-lines.ts'
import { stageFile, type LineReader } from '#shared/vault/bulk/stage-file.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  insertBulkFile,
  openChunkNumbers,
  claimFile,
  dropStaleFiles,
  dropUnclaimedFile,
  findSameFileInFlight,
} from '#shared/vault/bulk/files.postgres.ts'
import { deferBilling } from '#shared/billing/deferred-bill.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  insertOperations,
  findOperationState,
  zeroUsage,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { NewJob, Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'

export type IncomingFile = {
  kind: BulkFileKind
  source: AsyncIterable<Uint8Array>
  limits: LineLimits
  reader: LineReader
  session: string | null
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
  /** Of an import: what the vault has already is replaced, not skipped. */
  replaces: boolean
  /** A request will wait for its outcome. */
  awaited: boolean
  /**
   * Called once the whole file is here, with the hash of what is asked.
   *
   * @returns the id of the operation to work under.
   */
  onReceived(askedHash: Buffer): Promise<string>
}

/**
 * Takes in a file and promises to store it: staged while it arrives, then operation and jobs in one
 * transaction. When this rejects nothing is promised and nothing of the file is kept; what a process
 * that died had staged goes with the next file. The same file of the same vault joins the work that is
 * still under way for it, and is billed with that, when it ends, for what it stored.
 *
 * @returns the operation that stores it.
 * @throws Refusal `too-large`, `invalid` as `stageFile` says; `invalid`, `upstream` when `embeddings`
 *   names no model that answers.
 */
export async function acceptFile(
  { postgres, queue, embedders }: { postgres: Postgres; queue: Queue; embedders: Embedders },
  caller: Caller,
  incoming: IncomingFile,
): Promise<string> {
  const { kind, session, replaces } = incoming
  const model =
    incoming.embeddings === undefined || incoming.embeddings === embedders.defaultModel
      ? embedders.defaultModel
      : (await embedders.get(incoming.embeddings)).model
  const { vault } = caller.scope
  const file = mintId()
  await dropStaleFiles(postgres.query)
  await insertBulkFile(postgres.query, { id: file, vault, kind, session, model, replaces })
  try {
    const { source, limits, reader } = incoming
    const { lines, hash } = await stageFile(postgres.query, file, source, limits, reader)
    const askedHash = createHash('sha256')
      .update(JSON.stringify([kind, session, model, replaces]))
      .update(hash)
      .digest()
    const operation = await incoming.onReceived(askedHash)
    return await postgres.transaction(async tx => {
      await takeVaultAdvisoryLock(tx, vault, 'bulk')
      if ((await findOperationState(tx.query, caller.account, operation)) !== undefined)
        return operation
      const running = await findSameFileInFlight(tx.query, vault, askedHash)
      if (running !== undefined) return running
      const promised = newOperation(caller, operation, { ...incoming, lines })
      const [accepted] = await insertOperations(tx, [promised])
      await deferBilling(tx.query, operation)
      await claimFile(tx.query, file, { operation, askedHash, epoch: accepted!.epoch })
      const { pending } = accepted!
      await enqueueChunks({ queue }, tx, { kind, operation, vault, file, pending })
      return operation
    })
  } finally {
    await dropUnclaimedFile(postgres.query, file)
  }
}

function newOperation(
  { account, scope, keyHash }: Caller,
  id: string,
  { kind, awaited, session, lines }: IncomingFile & { lines: number },
): NewOperation {
  return {
    id,
    account,
    vault: scope.vault,
    keyHash,
    kind,
    awaited,
    session,
    total: lines,
    ...zeroUsage,
  }
}

type AcceptedFile = {
  kind: BulkFileKind
  operation: string
  vault: string
  file: string
  /** The vault's pending work, for fairness. */
  pending: number
}

/**
 * The jobs of a file. Chunks of an upload know nothing of each other and run side by side, each a step
 * further back in the queue; those of an import follow one another, so only the next one is promised.
 */
export async function enqueueChunks(
  { queue }: { queue: Queue },
  tx: Transaction,
  { kind, operation, vault, file, pending }: AcceptedFile,
): Promise<void> {
  const numbers = await openChunkNumbers(tx.query, file)
  const jobs = (kind === 'import' ? numbers.slice(0, 1) : numbers).map(
    (n, index): NewJob<BulkFileKind> => ({
      id: memoryIdOf(operation, n),
      data: { operation, vault, file, n },
      priority: -(pending + index),
    }),
  )
  await queue.send(tx, kind, jobs)
}
