import { addVectorsToDuplicates, textHashKey } from '#shared/vault/copy/vectors-of-duplicates.ts'
import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import { expiryFor, isExpired } from '#shared/domain/expiry.ts'
import {
  scheduleExpiry,
  applyCurrentRetention,
  cancelScheduledExpiry,
} from '#shared/vault/base/apply-retention.ts'
import { insertIfIdFree, type RestoredMemory } from '#shared/vault/bulk/memories.mongo.ts'
import { copySources, memoriesWithTexts, type CopySource } from '#shared/vault/copy/copies.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { findCopyChunk, type PendingCopyChunk } from '#shared/vault/copy/copies.postgres.ts'
import { findVaultRetention } from '#shared/vault/base/expiries.postgres.ts'
import { findKey } from '#shared/access/memory-keys.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { CopyJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'
import { recordChunkResult, assertEpoch } from '#shared/vault/copy/settle-chunk.ts'

type CopyBackend = Stores & { memories: MemoryStore; embedders: Embedders; expiry: ExpiryPurger }

const purgeWithinMs = 10_000

/**
 * Copies a chunk and settles it; the one that settles the last chunk ends the operation. Safe to run
 * any number of times, in several processes at once: ids are fixed, and a chunk is counted once.
 *
 * @throws Refusal `conflict` when the destination has ended or was cleared since the copy was accepted:
 *   trying again will not help; `upstream`, `unavailable`.
 */
export async function copyChunk(
  backend: CopyBackend,
  { operation, n }: CopyJob,
  { again = false, signal }: { again?: boolean; signal?: AbortSignal } = {},
): Promise<void> {
  const { postgres, mongo, memories } = backend
  const waiting = await findCopyChunk(postgres.query, operation, n)
  if (!waiting) return
  const { copy, chunk } = waiting
  const days = await findVaultRetention(postgres.query, copy.destination)
  const { space, copies } = await prepareCopies(backend, waiting, days, signal)
  const destination = { vault: copy.destination, epoch: copy.destinationEpoch }
  const written: string[] = []
  const announced = await scheduleExpiry(backend, [
    {
      operation: memoryIdOf(operation, n),
      vault: copy.destination,
      memories: copies.map(row => row.memory),
    },
  ])
  // A text is not there already when what is there is over.
  if (!(await backend.expiry.purgeExpired(copy.destination, purgeWithinMs))) {
    throw new Refusal('unavailable', 'Memories of the destination that are over are being removed')
  }

  await postgres
    .transaction(async tx => {
      // One at a time from looking for a text to having written it; edits look under the same hold.
      await takeVaultAdvisoryLock(tx, copy.destination, 'contents')
      await assertDestination(tx, waiting)
      const hashes = copies.map(({ hash }) => hash)
      const holders = await memoriesWithTexts(mongo, destination, hashes)
      const { standing: alreadyWritten, fresh } = splitByPresence(copies, holders)
      written.push(...fresh.map(({ memory }) => memory.id))
      await insertIfIdFree(
        mongo,
        fresh.map(({ memory }) => memory),
        space,
      )
      const copied = [...alreadyWritten, ...fresh].map(({ memory }) => memory)
      await applyCurrentRetention(backend, tx.query, {
        ...destination,
        ids: copied.map(({ id }) => id),
        // An earlier run may have written under another.
        days: again ? undefined : days,
      })
      const completing = { holders, copies, again }
      const completed = await addVectorsToDuplicates(backend, destination, space, completing)
      await recordChunkResult(tx, waiting, [...copied.map(({ id }) => id), ...completed], {
        copied: copied.length,
        skipped: chunk.ids.length - copied.length,
        failed: 0,
        tokens: copied.reduce((sum, { tokens }) => sum + tokens, 0),
        error: null,
        status: null,
      })
    })
    .catch(async (error: unknown) => {
      // Written under an epoch that is over: nobody has seen them, and nobody will.
      if (isFinal(error)) await memories.discard(destination, written).catch(() => {})
      throw error
    })
  await cancelScheduledExpiry(backend, announced)
}

/** Gives a chunk up: the others go on, and the copy says which failed and why. */
export async function failChunk(
  { postgres }: { postgres: Postgres },
  { operation, n }: CopyJob,
  error: unknown,
): Promise<void> {
  const waiting = await findCopyChunk(postgres.query, operation, n)
  if (!waiting) return
  const { first, ids } = waiting.chunk
  const message = error instanceof Refusal ? error.message : 'An unexpected failure'
  await postgres.transaction(tx =>
    recordChunkResult(tx, waiting, [], {
      copied: 0,
      skipped: 0,
      failed: ids.length,
      tokens: 0,
      error: `Memories ${first + 1} to ${first + ids.length}: ${message}`,
      status: (error instanceof Refusal && statusOfReason[error.reason]) || 500,
    }),
  )
}

/** Whether another try would fail the same way. */
export const isFinal = (error: unknown): boolean =>
  error instanceof Refusal && ['conflict', 'invalid'].includes(error.reason)

/** What a copy answers when it failed altogether. */
const statusOfReason: Partial<Record<Refusal['reason'], number>> = {
  invalid: 400,
  conflict: 409,
  upstream: 502,
  unavailable: 503,
}

type PreparedCopy = { hash: Uint8Array; memory: RestoredMemory }

/** The chunk's memories as they will stand in the destination; those deleted meanwhile are left out. */
async function prepareCopies(
  { mongo, embedders }: { mongo: Mongo; embedders: Embedders },
  { copy, chunk }: PendingCopyChunk,
  days: number | null,
  signal?: AbortSignal,
): Promise<{ space: string; copies: PreparedCopy[] }> {
  const embedder = await embedders.get(copy.model)
  const from = { vault: copy.source, epoch: copy.sourceEpoch }
  const sources = await copySources(mongo, from, embedder.space, chunk.ids)
  const bare = [...sources.values()].filter(({ vector }) => vector === null)
  const texts = bare.map(({ text }) => text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  const newVectors = new Map(bare.map(({ id }, i) => [id, vectors[i]!]))

  const copies = chunk.ids.flatMap((id, i) => {
    const source = sources.get(id)
    const vector = source?.vector ?? newVectors.get(id)
    if (!source || !vector || isExpired(source, Date.now())) return []
    // What is over at some time is over then wherever it is.
    const expiry = expiryFor({ asked: source.expiresAt, days, storedAt: Date.now() })
    return [prepareCopy(copy, chunk.first + i, { ...source, ...expiry }, vector)]
  })
  return { space: embedder.space, copies }
}

function prepareCopy(
  copy: PendingCopyChunk['copy'],
  index: number,
  { hash, ...source }: CopySource,
  vector: Float32Array,
): PreparedCopy {
  return {
    hash,
    memory: {
      ...source,
      id: copyIdOf(copy.operation, index, source.id),
      vault: copy.destination,
      epoch: copy.destinationEpoch,
      session: null,
      sessionEpoch: 0,
      operation: copy.operation,
      vector,
      restored: {
        consolidated: false,
        provenance: {
          origin_key: copy.sourceKey,
          transferred_at: copy.askedAt,
          source_id: source.id,
        },
      },
    },
  }
}

async function assertDestination(tx: Transaction, { copy }: PendingCopyChunk): Promise<void> {
  const key = await findKey(tx.query, copy.destinationHash)
  if (key?.vault !== copy.destination) {
    throw new Refusal('conflict', 'The destination key has ended')
  }
  assertEpoch(copy, key.epoch)
}

/**
 * Which copies an earlier run has written, and which are to be written; the rest have a text that the
 * destination has already, or that an earlier memory of this copy brings.
 */
function splitByPresence(
  copies: readonly PreparedCopy[],
  holders: readonly { id: string; hash: Uint8Array }[],
): { standing: PreparedCopy[]; fresh: PreparedCopy[] } {
  const ids = new Set(holders.map(({ id }) => id))
  const texts = new Set(holders.map(({ hash }) => textHashKey(hash)))
  const standing = copies.filter(({ memory }) => ids.has(memory.id))
  const fresh = copies.filter(({ hash }) => {
    const text = textHashKey(hash)
    return !texts.has(text) && texts.add(text)
  })
  return { standing, fresh }
}
