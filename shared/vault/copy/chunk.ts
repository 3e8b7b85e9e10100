import { completeHolders, textKey } from '#shared/vault/copy/complete.ts'
import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import { endsOf, isOver } from '#shared/domain/expiry.ts'
import { announceEnds, keepToPolicy, withdrawEnds } from '#shared/vault/base/retention-on-write.ts'
import { insertWhereFree, type RestoredMemory } from '#shared/vault/bulk/memories.mongo.ts'
import { copySources, holdersOfTexts, type CopySource } from '#shared/vault/copy/copies.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { findChunk, type WaitingChunk } from '#shared/vault/copy/copies.postgres.ts'
import { retentionOf } from '#shared/vault/base/expiries.postgres.ts'
import { findKey } from '#shared/access/keys.postgres.ts'
import { holdVault } from '#shared/vault/base/vaults.postgres.ts'
import type { CopyJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Expiry } from '#shared/vault/base/expiry-purger.ts'
import { settle, requireEpoch } from '#shared/vault/copy/settle-chunk.ts'

type Copying = Stores & { memories: Memories; embedders: Embedders; expiry: Expiry }

const overWithinMs = 10_000

/**
 * Copies a chunk and settles it; the one that settles the last chunk ends the operation. Safe to run
 * any number of times, in several processes at once: ids are fixed, and a chunk is counted once.
 *
 * @throws Refusal `conflict` when the destination has ended or was cleared since the copy was accepted:
 *   trying again will not help; `upstream`, `unavailable`.
 */
export async function copyChunk(
  backend: Copying,
  { operation, n }: CopyJob,
  { again = false, signal }: { again?: boolean; signal?: AbortSignal } = {},
): Promise<void> {
  const { postgres, mongo, memories } = backend
  const waiting = await findChunk(postgres.query, operation, n)
  if (!waiting) return
  const { copy, chunk } = waiting
  const days = await retentionOf(postgres.query, copy.destination)
  const { space, copies } = await preparedCopies(backend, waiting, days, signal)
  const destination = { vault: copy.destination, epoch: copy.destinationEpoch }
  const written: string[] = []
  const announced = await announceEnds(backend, [
    {
      operation: memoryIdOf(operation, n),
      vault: copy.destination,
      memories: copies.map(row => row.memory),
    },
  ])
  // A text is not there already when what is there is over.
  if (!(await backend.expiry.removeOver(copy.destination, overWithinMs))) {
    throw new Refusal('unavailable', 'Memories of the destination that are over are being removed')
  }

  await postgres
    .transaction(async tx => {
      // One at a time from looking for a text to having written it; edits look under the same hold.
      await holdVault(tx, copy.destination, 'contents')
      await requireDestination(tx, waiting)
      const hashes = copies.map(({ hash }) => hash)
      const holders = await holdersOfTexts(mongo, destination, hashes)
      const { standing, fresh } = sorted(copies, holders)
      written.push(...fresh.map(({ memory }) => memory.id))
      await insertWhereFree(
        mongo,
        fresh.map(({ memory }) => memory),
        space,
      )
      const copied = [...standing, ...fresh].map(({ memory }) => memory)
      await keepToPolicy(backend, tx.query, {
        ...destination,
        ids: copied.map(({ id }) => id),
        // An earlier run may have written under another.
        days: again ? undefined : days,
      })
      const completing = { holders, copies, again }
      const completed = await completeHolders(backend, destination, space, completing)
      await settle(tx, waiting, [...copied.map(({ id }) => id), ...completed], {
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
  await withdrawEnds(backend, announced)
}

/** Gives a chunk up: the others go on, and the copy says which failed and why. */
export async function failChunk(
  { postgres }: { postgres: Postgres },
  { operation, n }: CopyJob,
  error: unknown,
): Promise<void> {
  const waiting = await findChunk(postgres.query, operation, n)
  if (!waiting) return
  const { first, ids } = waiting.chunk
  const said = error instanceof Refusal ? error.message : 'An unexpected failure'
  await postgres.transaction(tx =>
    settle(tx, waiting, [], {
      copied: 0,
      skipped: 0,
      failed: ids.length,
      tokens: 0,
      error: `Memories ${first + 1} to ${first + ids.length}: ${said}`,
      status: (error instanceof Refusal && statuses[error.reason]) || 500,
    }),
  )
}

/** Whether another try would fail the same way. */
export const isFinal = (error: unknown): boolean =>
  error instanceof Refusal && ['conflict', 'invalid'].includes(error.reason)

/** What a copy answers when it failed altogether. */
const statuses: Partial<Record<Refusal['reason'], number>> = {
  invalid: 400,
  conflict: 409,
  upstream: 502,
  unavailable: 503,
}

type Prepared = { hash: Uint8Array; memory: RestoredMemory }

/** The chunk's memories as they will stand in the destination; those deleted meanwhile are left out. */
async function preparedCopies(
  { mongo, embedders }: { mongo: Mongo; embedders: Embedders },
  { copy, chunk }: WaitingChunk,
  days: number | null,
  signal?: AbortSignal,
): Promise<{ space: string; copies: Prepared[] }> {
  const embedder = await embedders.get(copy.model)
  const from = { vault: copy.source, epoch: copy.sourceEpoch }
  const sources = await copySources(mongo, from, embedder.space, chunk.ids)
  const bare = [...sources.values()].filter(({ vector }) => vector === null)
  const texts = bare.map(({ text }) => text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  const anew = new Map(bare.map(({ id }, i) => [id, vectors[i]!]))

  const copies = chunk.ids.flatMap((id, i) => {
    const source = sources.get(id)
    const vector = source?.vector ?? anew.get(id)
    if (!source || !vector || isOver(source, Date.now())) return []
    // What is over at some time is over then wherever it is.
    const ends = endsOf({ asked: source.expiresAt, days, storedAt: Date.now() })
    return [preparedCopy(copy, chunk.first + i, { ...source, ...ends }, vector)]
  })
  return { space: embedder.space, copies }
}

function preparedCopy(
  copy: WaitingChunk['copy'],
  index: number,
  { hash, ...source }: CopySource,
  vector: Float32Array,
): Prepared {
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

async function requireDestination(tx: Transaction, { copy }: WaitingChunk): Promise<void> {
  const key = await findKey(tx.query, copy.destinationHash)
  if (key?.vault !== copy.destination) {
    throw new Refusal('conflict', 'The destination key has ended')
  }
  requireEpoch(copy, key.epoch)
}

/**
 * Which copies an earlier run has written, and which are to be written; the rest have a text that the
 * destination has already, or that an earlier memory of this copy brings.
 */
function sorted(
  copies: readonly Prepared[],
  holders: readonly { id: string; hash: Uint8Array }[],
): { standing: Prepared[]; fresh: Prepared[] } {
  const ids = new Set(holders.map(({ id }) => id))
  const texts = new Set(holders.map(({ hash }) => textKey(hash)))
  const standing = copies.filter(({ memory }) => ids.has(memory.id))
  const fresh = copies.filter(({ hash }) => {
    const text = textKey(hash)
    return !texts.has(text) && texts.add(text)
  })
  return { standing, fresh }
}
