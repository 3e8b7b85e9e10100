import { embedToStore } from '#shared/vault/base/embed-to-store.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import type { Config } from '#shared/core/config.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { requestSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  addVectors,
  textsWithoutVector,
  countWithVector,
  countWithoutVector,
  dropOtherVectors,
  nextWithoutVector,
  nextWithOtherVectors,
} from '#shared/vault/reembed/vector-spaces.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import { finishOperation, reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import { recordSharedSpace } from '#shared/vault/base/org-spaces.postgres.ts'
import {
  advanceReembedding,
  clearedSessionEpochs,
  dropReembedding,
  findReembedding,
  insertReembedding,
  type Reembedding,
  type ReembeddingStep,
} from '#shared/vault/reembed/reembeddings.postgres.ts'
import { setVaultModel } from '#shared/vault/reembed/vault-models.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { ReembedJob } from '#shared/domain/job-payloads.ts'
import { obstacleTo } from '#shared/vault/reembed/obstacle.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Memories per step: one call to a provider, after which they become searchable together. */
const stepMemories = 256

type ReembeddingOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
}

/**
 * Accepts an operation that adds vectors of another model to all memories of a vault, in all sessions and
 * tiers. Accepting the same operation again changes nothing. It is not billed.
 */
export async function acceptReembedding(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, keyHash, scope }: ReembeddingOwner,
  asked: { operation: string; model: string; dropPrevious: boolean; awaited: boolean },
): Promise<void> {
  const { operation: id, model, dropPrevious, awaited } = asked
  const { vault } = scope
  await postgres.transaction(async tx => {
    const accepted = await acceptOperation(tx, queue, {
      operation: {
        id,
        account,
        vault,
        keyHash,
        kind: 'reembed',
        awaited,
        session: null,
        total: 0,
        billing: 'never',
      },
      queueName: 'reembed',
      jobs: () => [{ id: memoryIdOf(id, 0), data: { operation: id, step: 0 } }],
    })
    if (!accepted) return
    const { epoch } = accepted
    await insertReembedding(tx.query, { operation: id, vault, epoch, model, dropPrevious })
  })
}

type ReembeddingBackend = Stores & {
  embedders: Embedders
  queue: Queue
  config: Pick<Config, 'vectorIndex'>
  log: Log
}

/**
 * Does one step: embeds the memories of the step or drops their other vectors, makes that visible, and sends
 * the next step or ends the operation. Safe to run any number of times, in several processes at once: a step
 * counts once.
 *
 * The vault is scanned until a scan finds nothing more to embed, which includes memories that arrive during
 * the work. Both spaces can be searched all the time; vectors of other models are dropped only from memories
 * that have the new one. When all memories have it, this becomes the model of the vault.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable`.
 */
export async function reembedStep(
  backend: ReembeddingBackend,
  { operation, step }: ReembedJob,
  signal?: AbortSignal,
): Promise<void> {
  const { postgres, mongo, embedders } = backend
  const reembedding = await findReembedding(postgres.query, operation, step)
  if (!reembedding) return
  const obstacle = obstacleTo(reembedding)
  if (obstacle) return endReembedding(backend, reembedding, obstacle)

  const embedder = await embedders.get(reembedding.model)
  if (step === 0) {
    const options = { options: backend.config.vectorIndex, log: backend.log }
    await requestSearchIndexes(mongo, [embedder], options)
  }
  const ids = reembedding.places.flatMap(place => place.ids)
  const total =
    step === 0 ? await countWithoutVector(mongo, reembedding, embedder.space) : undefined
  const done = reembedding.dropping
    ? await dropVectorsOfOtherSpaces(backend, reembedding, embedder, ids)
    : await embedTextsWithoutVector(backend, reembedding, embedder, ids, signal)
  const next = await nextStep(backend, reembedding, embedder)

  await postgres.transaction(async tx => {
    await lockVaults(tx, [reembedding.vault])
    // A provider may have taken minutes: the vault can have been cleared or moved in that time.
    const current = await findReembedding(tx.query, operation, step)
    if (!current) return
    const obstacle = obstacleTo(current)
    if (obstacle) return finishReembedding(tx, backend.queue, current, obstacle)
    const embedded = reembedding.embedded + done.embedded
    const progress = { done: embedded, ...(total !== undefined && { total }) }
    await reportProgress(tx.query, operation, progress)
    const following = next ?? { dropping: reembedding.dropping, places: [], after: null }
    if (!(await advanceReembedding(tx.query, reembedding, done, following))) return
    if (ids.length > 0) {
      await changeVault(
        tx,
        reembedding.vault,
        reembedding.places.map(({ session, ids: stored }) => ({
          session,
          stored,
          vectorsOnly: true,
          // Indexes remove them before they read them again: one of a dropped space then lacks them.
          ...(reembedding.dropping && { removed: stored }),
        })),
      )
    }
    // All memories have the new vector: searches change to it before the first old vector is dropped.
    if (!reembedding.dropping && (!next || next.dropping)) {
      await recordSharedSpace(tx.query, reembedding.vault, embedder.space)
      await setVaultModel(tx.query, reembedding.vault, reembedding.model)
    }
    if (next) return sendStep(backend, tx, { operation, step: step + 1 })
    const { key, model } = reembedding
    const dropped = reembedding.dropped + done.dropped
    const { dimension } = embedder
    const outcome = { kind: 'reembed', key, model, dimension, embedded, dropped } as const
    await finishReembedding(tx, backend.queue, reembedding, outcome)
  })
}

type StepCounts = { embedded: number; dropped: number }

async function embedTextsWithoutVector(
  { mongo }: { mongo: Mongo },
  reembedding: Reembedding,
  embedder: Embedder,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<StepCounts> {
  if (ids.length === 0) return { embedded: 0, dropped: 0 }
  const withoutVector = await textsWithoutVector(mongo, reembedding, embedder.space, ids)
  const texts = withoutVector.map(({ text }) => text)
  const vectors = await embedToStore(embedder, texts, signal)
  const added = withoutVector.map((text, i) => ({ ...text, vector: vectors[i]! }))
  await addVectors(mongo, reembedding, embedder.space, added)
  return { embedded: await countWithVector(mongo, reembedding, embedder.space, ids), dropped: 0 }
}

async function dropVectorsOfOtherSpaces(
  { mongo }: { mongo: Mongo },
  reembedding: Reembedding,
  { space }: Embedder,
  ids: readonly string[],
): Promise<StepCounts> {
  await dropOtherVectors(mongo, reembedding, space, ids)
  return { embedded: 0, dropped: ids.length }
}

/** @returns null when nothing is left to do. */
async function nextStep(
  { mongo, postgres }: Stores,
  reembedding: Reembedding,
  { space }: Embedder,
): Promise<ReembeddingStep | null> {
  const sessionEpochs = await clearedSessionEpochs(postgres.query, reembedding.vault)
  const pageOptions = { sessionEpochs, max: stepMemories }
  const { after } = reembedding
  if (!reembedding.dropping) {
    const onward = await nextWithoutVector(mongo, reembedding, space, { ...pageOptions, after })
    if (onward.after) return { dropping: false, ...onward }
    // A new scan from the beginning, for memories that were stored behind the position.
    const again =
      after && (await nextWithoutVector(mongo, reembedding, space, { ...pageOptions, after: null }))
    if (again?.after) return { dropping: false, ...again }
    if (!reembedding.dropPrevious) return null
  }
  const start = reembedding.dropping ? after : null
  const others = await nextWithOtherVectors(mongo, reembedding, space, {
    ...pageOptions,
    after: start,
  })
  return others.after ? { dropping: true, ...others } : null
}

const sendStep = ({ queue }: { queue: Queue }, tx: Transaction, job: ReembedJob): Promise<void> =>
  queue.send(tx, 'reembed', [
    { id: memoryIdOf(job.operation, job.step), data: job, priority: -job.step },
  ])

async function endReembedding(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  reembedding: Reembedding,
  outcome: OperationOutcome,
): Promise<void> {
  await postgres.transaction(tx => finishReembedding(tx, queue, reembedding, outcome))
}

async function finishReembedding(
  tx: Transaction,
  queue: Queue,
  { operation }: Reembedding,
  outcome: OperationOutcome,
): Promise<void> {
  await finishOperation(tx, queue, operation, outcome)
  await dropReembedding(tx.query, operation)
}
