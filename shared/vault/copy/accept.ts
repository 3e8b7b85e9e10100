import { redactText } from '#shared/privacy/redact.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { CopyInput, CopyRequest } from '#shared/vault/copy/settle-chunk.ts'
import { acceptLongOperation } from '#shared/vault/base/long-operation.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { refusal } from '#shared/core/refusal.ts'
import { hashKey, maskKey, parseKey, permissionsByMode } from '#shared/access/key.ts'
import { findKeyAfterPurge, type ExpiryPurger } from '#shared/vault/base/expiry-protocol.ts'
import { isOrganizationKey } from '#shared/domain/member-scope.ts'
import type { Config } from '#shared/core/config.ts'

type NewCopy = {
  /** The UUIDv7 this copy is accepted under. */
  operation: string
  kind: 'transfer' | 'graft'
  destination: Destination
  /** Embedding model whose vector space the copies get; texts without a vector there are embedded. */
  model: string
  /** The memories to copy, oldest first. */
  ids: string[]
  /** For a graft. */
  graftQuery: { queries: string[]; threshold: number } | null
  /** Whether a request waits for the outcome. */
  awaited: boolean
}

/** Memories per job: 3 MB of vectors at 1,536 dimensions, and 0.1 s under the destination's lock. */
const chunkMemories = 500

/**
 * Accepts a copy: writes operation, the ids to copy and jobs in one transaction. Accepting the same operation
 * again changes nothing. It is billed when it ends, for what it copied.
 */
export async function acceptCopy(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  caller: Caller,
  copy: NewCopy,
): Promise<void> {
  const { operation, kind, destination, model, graftQuery, awaited } = copy
  const { account, keyHash, scope, maskedKey, keyRow } = caller
  // A query is no text to be stored, so no policy refuses it: its stored form is redacted.
  const kinds = new Set(keyRow.redaction?.kinds)
  const request: CopyRequest = {
    source: scope.vault,
    sourceEpoch: scope.epoch,
    sourceKey: maskedKey,
    destinationHash: destination.keyHash.toString('hex'),
    destinationKey: destination.key,
    model,
    queries: graftQuery?.queries.map(query => redactText(query, kinds)) ?? null,
    threshold: graftQuery?.threshold ?? null,
  }
  const inputs = splitIntoCopyChunks(copy.ids)
  const accepted = {
    id: operation,
    account,
    vault: scope.vault,
    keyHash,
    kind,
    awaited,
    total: inputs.length,
    billing: 'at end',
  } as const
  await postgres.transaction(tx =>
    acceptLongOperation(tx, queue, accepted, { target: destination, request, inputs }),
  )
}

/** A copy of nothing has one empty chunk, whose job ends the operation. */
function splitIntoCopyChunks(ids: readonly string[]): CopyInput[] {
  const chunks: CopyInput[] = []
  for (let first = 0; first < Math.max(1, ids.length); first += chunkMemories) {
    chunks.push({ first, ids: ids.slice(first, first + chunkMemories) })
  }
  return chunks
}

/** The vault that copies are written to. */
type Destination = {
  vault: string
  epoch: number
  /** The embedding model of the vault; null: the default model. */
  embeddings: string | null
  keyHash: Buffer
  /** Truncated. */
  key: string
}

/**
 * The vault that a destination key opens. Source and destination may belong to different accounts.
 *
 * @throws Refusal `invalid` for a key that does not exist or has ended, may not write, or opens the source
 *   vault.
 */
export async function resolveDestination(
  backend: { postgres: Postgres; config: Config; expiry: ExpiryPurger },
  source: Caller,
  presented: string,
): Promise<Destination> {
  const parsed = parseKey(presented)
  if (!parsed) throw refusal('invalid', 'unknownDestination')
  if (!permissionsByMode[parsed.mode].store) {
    throw refusal('invalid', 'destinationDoesNotStore', { mode: parsed.mode })
  }
  const keyHash = hashKey(backend.config.keyPepper, parsed.key)
  const row = await findKeyAfterPurge(backend, keyHash)
  if (!row) throw refusal('invalid', 'unknownDestination')
  if (row.memberScope && isOrganizationKey(row.memberScope)) {
    throw refusal('invalid', 'destinationOfOrganization')
  }
  if (row.vault === source.scope.vault) throw refusal('invalid', 'destinationIsSource')
  const { vault, epoch, embeddingModel } = row
  return { vault, epoch, embeddings: embeddingModel, keyHash, key: maskKey(parsed.key) }
}
