import { settleStep } from '#shared/vault/base/long-operation.ts'
import { lockVault } from '#shared/vault/base/vaults.postgres.ts'
import { findPieces } from '#shared/vault/bulk/documents.mongo.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import { ofFile } from '#shared/vault/bulk/finalize-chunk.ts'
import { replaceKeptFile } from '#shared/vault/bulk/kept-files.postgres.ts'
import { deleteInParts } from '#shared/vault/delete/delete-memories.ts'

/**
 * The last step of a version of a document: removes what the version before had and this one has not, keeps the file
 * where the policy does, and ends the operation. All of the version is stored by then. Safe to run any number of times:
 * what is gone is not found.
 *
 * @throws Refusal `unavailable` where some are not removed yet; the next run finishes it.
 */
export async function removeEarlierVersion(
  backend: Parameters<typeof deleteInParts>[0],
  chunk: BulkChunk,
): Promise<void> {
  const { document = '', operation, vault } = chunk
  const ids = await findPieces(backend.mongo, chunk, document, operation)
  await deleteInParts(backend, { ...chunk, scope: chunk }, ids)
  // A file without a memory, such as a picture without a caption, could be neither found nor deleted.
  const isKept = (await findPieces(backend.mongo, chunk, document)).length > 0
  await backend.postgres.transaction(async tx => {
    await lockVault(tx, vault)
    await replaceKeptFile(tx.query, chunk, isKept)
    await settleStep(tx, backend.queue, chunk, { ...ofFile, counts: { replaced: ids.length } })
  })
}
