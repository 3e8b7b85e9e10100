import type { Embedder } from '#shared/domain/embedder.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
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
import {
  finishOperation,
  reportProgress,
  type OperationResult,
} from '#shared/operations/operation-rows.postgres.ts'
import {
  insertOperations,
  findOperationState,
  zeroUsage,
} from '#shared/operations/operations.postgres.ts'
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
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** One call to a provider, and the memories that become searchable together. */
const stepMemories = 256

type ReembeddingOwner = Pick<Caller, 'account' | 'keyHash'> & {
  scope: Pick<Caller['scope'], 'vault'>
}

/**
 * Promises to give every memory of a vault, in all its sessions and tiers, a vector of another model.
 * Accepting the same operation again changes nothing. Nothing is billed: the memories are stored and
 * paid for.
 */
export async function acceptReembedding(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, keyHash, scope }: ReembeddingOwner,
  asked: { operation: string; model: string; dropPrevious: boolean; awaited: boolean },
): Promise<void> {
  const { operation: id, model, dropPrevious, awaited } = asked
  const { vault } = scope
  await postgres.transaction(async tx => {
    if ((await findOperationState(tx.query, account, id)) !== undefined) return
    const [accepted] = await insertOperations(tx, [
      {
        id,
        account,
        vault,
        keyHash,
        kind: 'reembed',
        awaited,
        session: null,
        total: 0,
        ...zeroUsage,
      },
    ])
    const { epoch, pending } = accepted!
    await insertReembedding(tx.query, { operation: id, vault, epoch, model, dropPrevious })
    const job = { id: memoryIdOf(id, 0), data: { operation: id, step: 0 }, priority: -pending }
    await queue.send(tx, 'reembed', [job])
  })
}

type ReembeddingBackend = Stores & { embedders: Embedders; queue: Queue }

/**
 * Does one step: embeds the memories that were written down for it, or drops their other vectors, makes
 * that visible, and sends the next step or ends the operation. Safe to run any number of times, in
 * several processes at once: a step counts once.
 *
 * Looks through the vault until one look finds nothing more to embed, so what arrives meanwhile is
 * embedded too. Both spaces can be searched all the time; vectors of other models go only from memories
 * that have the new one. Once all are there, what names no model goes by this one.
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
  if (reembedding.epoch !== reembedding.currentEpoch)
    return endReembedding(backend, reembedding, clearedOutcome)

  const embedder = await embedders.get(reembedding.model)
  const ids = reembedding.places.flatMap(place => place.ids)
  const total =
    step === 0 ? await countWithoutVector(mongo, reembedding, embedder.space) : undefined
  const done = reembedding.dropping
    ? await dropVectorsOfOtherSpaces(backend, reembedding, embedder, ids)
    : await embedTextsWithoutVector(backend, reembedding, embedder, ids, signal)
  const next = await nextStep(backend, reembedding, embedder)

  await postgres.transaction(async tx => {
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
          unsaid: true,
          // Forgotten before they are read again: a space they have left does not find them.
          ...(reembedding.dropping && { removed: stored }),
        })),
      )
    }
    // All of it is there: before the first memory leaves the space it was in, nobody looks in that.
    if (!reembedding.dropping && (!next || next.dropping)) {
      await recordSharedSpace(tx.query, reembedding.vault, embedder.space)
      await setVaultModel(tx.query, reembedding.vault, reembedding.model)
    }
    if (next) return sendStep(backend, tx, { operation, step: step + 1 })
    const counted = { ...reembedding, embedded, dropped: reembedding.dropped + done.dropped }
    await finishReembedding(tx, counted, completedOutcome(counted, embedder))
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
  const bare = await textsWithoutVector(mongo, reembedding, embedder.space, ids)
  const texts = bare.map(({ text }) => text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  const added = bare.map((text, i) => ({ ...text, vector: vectors[i]! }))
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
    // From the beginning again, for what arrived behind us.
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
  { postgres }: { postgres: Postgres },
  reembedding: Reembedding,
  outcome: OperationResult,
): Promise<void> {
  await postgres.transaction(tx => finishReembedding(tx, reembedding, outcome))
}

async function finishReembedding(
  tx: Transaction,
  { operation }: Reembedding,
  outcome: OperationResult,
): Promise<void> {
  await finishOperation(tx.query, operation, outcome)
  await dropReembedding(tx.query, operation)
}

const clearedOutcome: OperationResult = {
  status: 409,
  body: { error: 'The vault was cleared meanwhile', hint: 'What is stored now may be re-embedded' },
}

function completedOutcome(
  { key, model, operation, embedded, dropped }: Reembedding,
  { dimension }: Embedder,
): OperationResult {
  return {
    status: 200,
    body: {
      key,
      embeddings: model,
      dimension,
      embedded,
      dropped,
      operation_id: operation,
      message: `${embedded} memories have been embedded with ${model}`,
    },
  }
}
