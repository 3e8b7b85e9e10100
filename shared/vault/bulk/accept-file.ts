import { createHash } from 'node:crypto'
import type { BulkFileKind } from '#shared/domain/file-types.ts'
import type { LineLimits } from '#shared/vault/bulk/split-lines.ts'
import { stageFile, type LineReader } from '#shared/vault/bulk/stage-file.ts'
import { idForPurpose, mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  claimFile,
  type FileRequest,
  dropStaleFiles,
  dropUnclaimedFile,
  endEarlierVersions,
  findSameFileInFlight,
} from '#shared/vault/bulk/files.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { stageBytes } from '#shared/vault/bulk/kept-files.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import { insertLongOperation } from '#shared/operations/operation-steps.postgres.ts'
import { firstStepJobs } from '#shared/vault/base/long-operation.ts'
import { findOperationState } from '#shared/operations/operations.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'

export type IncomingFile = {
  kind: BulkFileKind
  source: AsyncIterable<Uint8Array>
  limits: LineLimits
  reader: LineReader
  session: string | null
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
  /** For an import: memories that the vault has already are replaced, not skipped. */
  replaces: boolean
  /** The id of the document that the lines are of. */
  document?: string
  /** The document itself, where the policy keeps it; it is kept when all of its pieces are stored. */
  keep?: { name: string; parts: readonly Uint8Array[] } | undefined
  /** Pictures that lines name by their digests. */
  pictures?: readonly { digest: string; base64: string }[]
  /** Whether a request waits for the outcome. */
  awaited: boolean
  /** Called with the hash of the request when the whole file is received. @returns the operation's id. */
  onReceived(requestHash: Buffer): Promise<string>
}

/**
 * Accepts a file: stages its lines while it arrives, then writes operation and jobs in one transaction. When
 * this rejects, nothing is accepted and no line stays; a sweep deletes what dead processes staged. The same file
 * for the same vault joins the operation that is under way. Chunks of an upload are stored in parallel, those of
 * an import in turn.
 *
 * @returns the id of the operation that stores the file
 * @throws Refusal `too-large`, `invalid` as `stageFile`; `invalid`, `upstream` when `embeddings` names no known
 *   model or the model does not answer.
 */
export async function acceptFile(
  { postgres, queue, embedders }: { postgres: Postgres; queue: Queue; embedders: Embedders },
  caller: Caller,
  incoming: IncomingFile,
): Promise<string> {
  const { kind, session, replaces, document, awaited, keep, pictures = [] } = incoming
  const { account, keyHash } = caller
  const billed = { account, keyHash, billing: 'at end' } as const
  const model =
    incoming.embeddings === undefined || incoming.embeddings === embedders.defaultModel
      ? embedders.defaultModel
      : (await embedders.get(incoming.embeddings)).model
  const { vault } = caller.scope
  const file = mintId()
  await dropStaleFiles(postgres.query)
  const redaction = pictures.length > 0 ? incoming.reader.redaction : undefined
  const request: FileRequest = { session, model, replaces, document, redaction }
  const staged = { id: file, operation: null, kind, vault, epoch: null, request }
  await insertLongOperation(postgres.query, staged)
  try {
    const { source, limits, reader } = incoming
    const upload = { id: file, vault, session, document: document ?? '' }
    if (keep) await stageBytes(postgres.query, upload, { ...keep, id: file })
    for (const { digest: name, base64 } of pictures) {
      const parts = [Buffer.from(base64, 'base64')]
      await stageBytes(postgres.query, upload, { id: idForPurpose(file, name), name, parts })
    }
    const { lines, hash } = await stageFile(postgres.query, file, source, limits, reader)
    const requestHash = createHash('sha256')
      .update(JSON.stringify([kind, session, model, replaces]))
      .update(hash)
      .digest()
    const operation = await incoming.onReceived(requestHash)
    return await postgres.transaction(async tx => {
      await takeVaultAdvisoryLock(tx, vault, 'bulk')
      if ((await findOperationState(tx.query, account, operation)) !== undefined) return operation
      const running = await findSameFileInFlight(tx.query, vault, requestHash)
      if (running !== undefined) return running
      if (document !== undefined) await endEarlierVersions(tx.query, vault, document)
      await acceptOperation(tx, queue, {
        operation: { ...billed, id: operation, vault, kind, awaited, session, total: lines },
        queueName: kind,
        async jobs({ epoch, pending }) {
          const chunks = await claimFile(tx.query, file, { operation, requestHash, epoch })
          return firstStepJobs({ operation, kind, vault }, chunks, pending)
        },
      })
      return operation
    })
  } finally {
    await dropUnclaimedFile(postgres.query, file)
  }
}
