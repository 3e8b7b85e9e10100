import type { Backend } from '#shared/backend.ts'
import type { CopyJob } from '#shared/copy/accept.ts'
import { completeHolders, textKey } from '#shared/copy/complete.ts'
import { outcomeOf } from '#shared/copy/outcome.ts'
import { Refusal } from '#shared/errors.ts'
import { copyIdOf, memoryIdOf } from '#shared/ids.ts'
import { endsOf, isOver } from '#shared/memory/expiry.ts'
import { announceEnds, keepToPolicy, withdrawEnds } from '#shared/memory/keep-to-policy.ts'
import { insertWhereFree, type RestoredMemory } from '#shared/mongo/bulk-memories.ts'
import { copySources, holdersOfTexts, type CopySource } from '#shared/mongo/copies.ts'
import { recordBill } from '#shared/postgres/bill.ts'
import type { Transaction } from '#shared/postgres/connect.ts'
import {
  dropCopy,
  findChunk,
  holdCopy,
  settleChunk,
  tallyCopy,
  type ChunkResult,
  type WaitingChunk,
} from '#shared/postgres/copies.ts'
import { retentionOf } from '#shared/postgres/expiries.ts'
import { findKey } from '#shared/postgres/keys.ts'
import { finishOperation, reportProgress } from '#shared/postgres/operation-rows.ts'
import { changeVault, holdVault } from '#shared/postgres/vaults.ts'

type Copying = Pick<Backend, 'postgres' | 'mongo' | 'memories' | 'embedders' | 'expiry'>

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
  { postgres }: Pick<Backend, 'postgres'>,
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
  { mongo, embedders }: Pick<Backend, 'mongo' | 'embedders'>,
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

function requireEpoch(copy: WaitingChunk['copy'], epoch: number): void {
  if (epoch === copy.destinationEpoch) return
  throw new Refusal('conflict', 'The destination was cleared meanwhile')
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

async function settle(
  tx: Transaction,
  { copy, chunk }: WaitingChunk,
  stored: readonly string[],
  result: ChunkResult,
): Promise<void> {
  const { operation, source, destination } = copy
  const held = await holdCopy(tx.query, copy)
  if (!held) return
  if (stored.length > 0) requireEpoch(copy, held.destinationEpoch)
  if (!(await settleChunk(tx.query, operation, chunk.n, result))) return
  if (stored.length > 0) {
    const debt = { rawUnits: result.copied, rawTokens: result.tokens }
    await changeVault(tx, destination, [{ session: null, stored }], debt)
  }

  const tally = await tallyCopy(tx.query, operation)
  await reportProgress(tx.query, operation, { done: tally.settled })
  if (tally.settled < tally.chunks) return
  const { account, keyHash, queries } = held
  const kind = queries === null ? 'transfer' : 'graft'
  await finishOperation(tx.query, operation, outcomeOf({ ...copy, queries }, tally))
  const bill = { id: operation, account, vault: source, keyHash, kind, memoryTokens: tally.tokens }
  if (bill.memoryTokens > 0) await recordBill(tx, bill)
  await dropCopy(tx.query, operation)
}
