import { embedToStore } from '#shared/vault/base/embed-to-store.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import { expiryFor, isExpired } from '#shared/domain/expiry.ts'
import {
  applyCurrentRetention,
  withExpiryProtocol,
  type ExpiryPurger,
} from '#shared/vault/base/expiry-protocol.ts'
import { insertIfIdFree, type RestoredMemory } from '#shared/vault/bulk/memories.mongo.ts'
import {
  copySources,
  memoriesWithTexts,
  type CopySource,
  type MemoryTextHash,
} from '#shared/vault/copy/copies.mongo.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { findStep } from '#shared/operations/operation-steps.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import { findVaultRetention } from '#shared/vault/base/expiries.postgres.ts'
import { findEpoch, takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { isPermanentFailure } from '#shared/domain/jobs.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { assertEpoch, settleChunk, type CopyChunk } from '#shared/vault/copy/settle-chunk.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { addVectors, textsWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'

type CopyBackend = Stores & {
  queue: Queue
  memories: MemoryStore
  embedders: Embedders
  expiry: ExpiryPurger
}

const purgeWithinMs = 10_000

/**
 * Copies a chunk and settles it. Safe to run any number of times at once: ids are fixed, and a chunk is counted
 * once.
 *
 * @throws Refusal `conflict` when the destination has ended or was cleared since the copy was accepted;
 *   `upstream`, `unavailable`.
 */
export async function copyChunk(
  backend: CopyBackend,
  { operation, n }: Omit<StepJob, 'vault'>,
  { again = false, signal }: { again?: boolean; signal?: AbortSignal } = {},
): Promise<void> {
  const { query } = backend.postgres
  const chunk = await findStep<CopyChunk>(query, operation, n)
  if (!chunk) return
  const { vault } = chunk
  const days = await findVaultRetention(query, vault)
  const prepared = await prepareCopies(backend, chunk, days, signal)
  const memories = prepared.copies.map(({ memory }) => memory)
  const work = { operation: memoryIdOf(operation, n), vault, memories }
  await withExpiryProtocol(backend, [work], async () => {
    // A text of the destination that has expired does not count as present.
    if (!(await backend.expiry.purgeExpired(vault, purgeWithinMs))) {
      throw refusal('unavailable', 'destinationExpiring')
    }
    await writeCopies(backend, chunk, prepared, { again, days })
  })
}

async function writeCopies(
  backend: CopyBackend,
  chunk: CopyChunk,
  { space, copies }: { space: string; copies: PreparedCopy[] },
  { again, days }: { again: boolean; days: number | null },
): Promise<void> {
  const { postgres, mongo, memories, queue } = backend
  const { vault, source } = chunk
  const written: string[] = []
  await postgres
    .transaction(async tx => {
      // The lock covers the search for a text and its insertion; edits take the same lock.
      await takeVaultAdvisoryLock(tx, vault, 'contents')
      // Another run may have settled the chunk while this one waited.
      if (!(await findStep(tx.query, chunk.operation, chunk.n))) return
      await assertDestination(tx.query, chunk)
      const orphaned = again ? idsWithoutSource(chunk, copies) : []
      // Before the search for texts: another memory of the chunk may have the text of one of them.
      if (orphaned.length > 0) await memories.discard(chunk, orphaned)
      const hashes = copies.map(({ hash }) => hash)
      const holders = await memoriesWithTexts(mongo, chunk, hashes)
      const { alreadyWritten, fresh } = splitByPresence(copies, holders)
      const freshMemories = fresh.map(({ memory }) => memory)
      written.push(...freshMemories.map(({ id }) => id))
      await insertIfIdFree(mongo, freshMemories, space)
      const copied = [...alreadyWritten, ...fresh].map(({ memory }) => memory)
      await applyCurrentRetention(backend, tx.query, {
        ...chunk,
        ids: copied.map(({ id }) => id),
        // An earlier run may have written under another retention.
        days: again ? undefined : days,
      })
      const completing = { holders, copies, again }
      const completed = await addVectorsToDuplicates(backend, chunk, space, completing)
      // From here on the source cannot be cleared before the copies are settled.
      await lockVaults(tx, [source, vault])
      if (await isSourceCleared(tx.query, chunk)) {
        const removed = idsWithoutSource(chunk, [])
        await memories.discard(chunk, removed)
        await settleChunk(tx, queue, chunk, { stored: completed, removed }, {})
        return
      }
      const stored = [...copied.map(({ id }) => id), ...completed]
      const change = { stored, removed: orphaned }
      await settleChunk(tx, queue, chunk, change, {
        copied: copied.length,
        tokens: copied.reduce((sum, { tokens }) => sum + tokens, 0),
      })
    })
    .catch(async (error: unknown) => {
      // They were written under an epoch that has ended, and were never visible.
      if (isPermanentFailure(error)) await memories.discard(chunk, written).catch(() => {})
      throw error
    })
}

type PreparedCopy = { hash: Uint8Array; memory: RestoredMemory }

/** The memories of a chunk as the destination will store them; those deleted, cleared or expired since are left out. */
async function prepareCopies(
  { postgres, mongo, embedders }: Stores & { embedders: Embedders },
  chunk: CopyChunk,
  days: number | null,
  signal?: AbortSignal,
): Promise<{ space: string; copies: PreparedCopy[] }> {
  const embedder = await embedders.get(chunk.model)
  if (await isSourceCleared(postgres.query, chunk)) return { space: embedder.space, copies: [] }
  const from = { vault: chunk.source, epoch: chunk.sourceEpoch }
  const sources = await copySources(mongo, from, embedder.space, chunk.ids)
  const withoutVector = [...sources.values()].filter(({ vector }) => vector === null)
  const texts = withoutVector.map(({ text }) => text)
  const vectors = await embedToStore(embedder, texts, signal)
  const newVectors = new Map(withoutVector.map(({ id }, i) => [id, vectors[i]!]))

  const copies = chunk.ids.flatMap((id, i) => {
    const source = sources.get(id)
    const vector = source?.vector ?? newVectors.get(id)
    if (!source || !vector || isExpired(source, Date.now())) return []
    // A copy expires no later than its source.
    const expiry = expiryFor({ requested: source.expiresAt, days, storedAt: Date.now() })
    return [prepareCopy(chunk, chunk.first + i, { ...source, ...expiry }, vector)]
  })
  return { space: embedder.space, copies }
}

function prepareCopy(
  { operation, vault, epoch, sourceKey, createdAt }: CopyChunk,
  index: number,
  { hash, ...source }: CopySource,
  vector: Float32Array,
): PreparedCopy {
  return {
    hash,
    memory: {
      ...source,
      id: copyIdOf(operation, index, source.id),
      vault,
      epoch,
      session: null,
      sessionEpoch: 0,
      operation,
      vector,
      restored: {
        consolidated: false,
        provenance: { origin_key: sourceKey, transferred_at: createdAt, source_id: source.id },
      },
    },
  }
}

/** Ids of copies that an earlier run may have written, of memories that are not to be copied any more. */
function idsWithoutSource(
  { operation, first, ids }: CopyChunk,
  copies: readonly PreparedCopy[],
): string[] {
  const wanted = new Set(copies.map(({ memory }) => memory.id))
  return ids.map((id, i) => copyIdOf(operation, first + i, id)).filter(id => !wanted.has(id))
}

/** The destination is checked with every chunk: a cleared vault or an ended key gets nothing more. */
async function assertDestination(query: Query, chunk: CopyChunk): Promise<void> {
  const key = await findKey(query, Buffer.from(chunk.destinationHash, 'hex'))
  if (key?.vault !== chunk.vault) throw new Refusal('conflict', 'The destination key has ended')
  assertEpoch(chunk, key.epoch)
}

/** Whether the source was cleared or erased since the copy was accepted: none of its memories are left. */
const isSourceCleared = async (
  query: Query,
  { source, sourceEpoch }: CopyChunk,
): Promise<boolean> => (await findEpoch(query, { vault: source })) !== sourceEpoch

/**
 * Copies that an earlier run has written, and copies to write. The rest have a text that the destination or
 * an earlier memory of this copy has already.
 */
function splitByPresence(
  copies: readonly PreparedCopy[],
  holders: readonly { id: string; hash: Uint8Array }[],
): { alreadyWritten: PreparedCopy[]; fresh: PreparedCopy[] } {
  const ids = new Set(holders.map(({ id }) => id))
  const texts = new Set(holders.map(({ hash }) => textHashKey(hash)))
  const alreadyWritten = copies.filter(({ memory }) => ids.has(memory.id))
  const fresh = copies.filter(({ hash }) => {
    const text = textHashKey(hash)
    return !texts.has(text) && texts.add(text)
  })
  return { alreadyWritten, fresh }
}

const textHashKey = (hash: Uint8Array): string => Buffer.from(hash).toString('base64')

/**
 * Adds the vectors of copies to memories of the destination that have the same texts and no vector in that
 * space, so that a search finds these texts although they were not copied.
 *
 * @param again whether an earlier run may have added vectors; its ids are then returned as well
 * @returns the ids that indexes of the space have to read again
 */
async function addVectorsToDuplicates(
  { mongo }: { mongo: Mongo },
  destination: Pick<VaultScope, 'vault' | 'epoch'>,
  space: string,
  {
    holders,
    copies,
    again,
  }: {
    holders: readonly MemoryTextHash[]
    copies: readonly { hash: Uint8Array; memory: { vector: Float32Array } }[]
    again: boolean
  },
): Promise<string[]> {
  if (holders.length === 0) return []
  const texts = new Map(holders.map(({ id, hash }) => [id, textHashKey(hash)]))
  const vectors = new Map(copies.map(({ hash, memory }) => [textHashKey(hash), memory.vector]))
  const withoutVector = await textsWithoutVector(mongo, destination, space, [...texts.keys()])
  await addVectors(
    mongo,
    destination,
    space,
    withoutVector.map(row => ({ ...row, vector: vectors.get(texts.get(row.id)!)! })),
  )
  return again ? [...texts.keys()] : withoutVector.map(({ id }) => id)
}
