import { embedToStore } from '#shared/vault/base/embed-to-store.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import type { Config } from '#shared/core/config.ts'
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
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { findStep } from '#shared/operations/operation-steps.postgres.ts'
import {
  acceptLongOperation,
  endLongOperation,
  settleStep,
} from '#shared/vault/base/long-operation.ts'
import { recordSharedSpace } from '#shared/vault/base/org-spaces.postgres.ts'
import {
  readObstacle,
  type ReembeddingInput,
  type ReembeddingRequest,
  type ReembeddingStep,
  setVaultModel,
  dueModelChecks,
  postponeModelCheck,
  type DueModelCheck,
} from '#shared/vault/reembed/vault-models.postgres.ts'
import { findSessionEpochs } from '#shared/vault/base/vaults.postgres.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import type { OperationOutcome } from '#shared/domain/operation-outcome.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'

/** Memories per step: one call to a provider, after which they become searchable together. */
const stepMemories = 256

/**
 * Accepts an operation that adds vectors of another model to all memories of a vault. Accepting the same
 * operation again changes nothing. It is not billed.
 */
export async function acceptReembedding(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  owner: Pick<Caller, 'account' | 'keyHash'> & {
    scope: Pick<Caller['scope'], 'vault'>
  },
  asked: { operation: string; model: string; dropPrevious: boolean; awaited: boolean },
): Promise<void> {
  const { account, keyHash, scope } = owner
  const { operation: id, model, dropPrevious, awaited } = asked
  const operation = {
    id,
    account,
    vault: scope.vault,
    keyHash,
    kind: 'reembed',
    awaited,
    total: 0,
    billing: 'never',
  } as const
  const request: ReembeddingRequest = { model, dropPrevious }
  await postgres.transaction(tx =>
    acceptLongOperation(tx, queue, operation, { request, inputs: [nothingToDo] }),
  )
}

const nothingToDo: ReembeddingInput = { dropping: false, places: [], after: null }

/**
 * Does one step: embeds memories or drops their other vectors, makes that visible, and sends the next step or
 * ends the operation. Safe to run any number of times at once: a step counts once.
 *
 * The vault is scanned until a scan finds nothing more to embed, memories that arrive meanwhile included. Both
 * spaces can be searched all the time; vectors of other models are dropped only from memories that have the new
 * one. When all memories have it, this becomes the model of the vault.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable`.
 */
export async function reembedStep(
  backend: Stores & {
    embedders: Embedders
    queue: Queue
    config: Pick<Config, 'vectorIndex'>
    log: Log
  },
  { operation, n }: Omit<StepJob, 'vault'>,
  signal?: AbortSignal,
): Promise<void> {
  const { postgres, mongo, embedders, queue } = backend
  const step = await findStep<ReembeddingStep>(postgres.query, operation, n)
  if (!step) return
  const obstacle = await readObstacle(postgres.query, step)
  if (obstacle)
    return postgres.transaction(tx => endLongOperation(tx, queue, operation, failures[obstacle]))

  const embedder = await embedders.get(step.model)
  if (n === 0) {
    const options = { options: backend.config.vectorIndex, log: backend.log }
    await requestSearchIndexes(mongo, [embedder], options)
  }
  const { vault, dropping } = step
  const ids = step.places.flatMap(place => place.ids)
  const total = n === 0 ? await countWithoutVector(mongo, step, embedder.space) : undefined
  const counts = dropping
    ? await dropVectorsOfOtherSpaces(backend, step, embedder, ids)
    : await embedTextsWithoutVector(backend, step, embedder, ids, signal)
  const next = await nextStep(backend, step, embedder)

  await postgres.transaction(async tx => {
    await lockVaults(tx, [vault])
    // A provider may have taken minutes: the vault can have been cleared or moved in that time.
    const obstacle = await readObstacle(tx.query, step)
    if (obstacle) return endLongOperation(tx, queue, operation, failures[obstacle])
    const isFirstRun = await settleStep(tx, queue, step, {
      counts,
      next,
      total,
      changes: step.places.map(({ session, ids: stored }) => ({
        session,
        stored,
        vectorsOnly: true,
        // Indexes remove them before they read them again: one of a dropped space then lacks them.
        ...(dropping && { removed: stored }),
      })),
      progress: tally => tally.counts.embedded!,
      summarize: (tally, { key, model }) => {
        const { embedded = 0, dropped = 0 } = tally.counts
        return { kind: 'reembed', key, model, dimension: embedder.dimension, embedded, dropped }
      },
    })
    // All memories have the new vector: searches change to it before the first old vector is dropped.
    if (isFirstRun && !dropping && (!next || next.dropping)) {
      await recordSharedSpace(tx.query, vault, embedder.space)
      await setVaultModel(tx.query, vault, step.model)
    }
  })
}

const failures = {
  cleared: {
    kind: 'failed',
    reason: 'conflict',
    error: 'The vault was cleared meanwhile',
    hint: 'What is stored now may be re-embedded',
  },
  superseded: {
    kind: 'failed',
    reason: 'conflict',
    error: 'Another re-embedding has moved the vault since',
    hint: 'Send the request again to move it to this model',
  },
} as const satisfies Record<string, OperationOutcome>

async function embedTextsWithoutVector(
  { mongo }: { mongo: Mongo },
  step: ReembeddingStep,
  embedder: Embedder,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<{ embedded: number; dropped: number }> {
  if (ids.length === 0) return { embedded: 0, dropped: 0 }
  const withoutVector = await textsWithoutVector(mongo, step, embedder.space, ids)
  const texts = withoutVector.map(({ text }) => text)
  const vectors = await embedToStore(embedder, texts, signal)
  const added = withoutVector.map((text, i) => ({ ...text, vector: vectors[i]! }))
  await addVectors(mongo, step, embedder.space, added)
  return { embedded: await countWithVector(mongo, step, embedder.space, ids), dropped: 0 }
}

async function dropVectorsOfOtherSpaces(
  { mongo }: { mongo: Mongo },
  step: ReembeddingStep,
  { space }: Embedder,
  ids: readonly string[],
): Promise<{ embedded: number; dropped: number }> {
  await dropOtherVectors(mongo, step, space, ids)
  return { embedded: 0, dropped: ids.length }
}

/** @returns null when nothing is left to do. */
async function nextStep(
  { mongo, postgres }: Stores,
  step: ReembeddingStep,
  { space }: Embedder,
): Promise<ReembeddingInput | null> {
  const sessionEpochs = await findSessionEpochs(postgres.query, step)
  const pageOptions = { sessionEpochs, max: stepMemories }
  const { after } = step
  if (!step.dropping) {
    const onward = await nextWithoutVector(mongo, step, space, { ...pageOptions, after })
    if (onward.after) return { dropping: false, ...onward }
    // A new scan from the beginning, for memories that were stored behind the position.
    const again =
      after && (await nextWithoutVector(mongo, step, space, { ...pageOptions, after: null }))
    if (again?.after) return { dropping: false, ...again }
    if (!step.dropPrevious) return null
  }
  const start = step.dropping ? after : null
  const others = await nextWithOtherVectors(mongo, step, space, { ...pageOptions, after: start })
  return others.after ? { dropping: true, ...others } : null
}

/** Vaults checked in one run. */
const movesMax = 50

/**
 * Re-embeds memories that work accepted before has stored in the old space after their vault moved to another
 * model. Vaults are checked a minute after the move and then less and less often for a day; the re-embedding is
 * an unbilled operation of the account.
 *
 * @returns for how many vaults a re-embedding was accepted
 */
export async function reembedLateArrivals(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  let accepted = 0
  for (const moved of await dueModelChecks(query, movesMax)) {
    // Postponed first, so that the next check repeats what this one misses or fails to do.
    await postponeModelCheck(query, moved.vault)
    if (await startReembedding(backend, moved)) accepted++
  }
  return accepted
}

async function startReembedding(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
  { vault, epoch, model, account, keyHash }: DueModelCheck,
): Promise<boolean> {
  const { postgres, mongo, log } = backend
  const embedder = await backend.embedders.get(model).catch(rethrowUnavailable)
  if (!embedder) return false
  const sessionEpochs = await findSessionEpochs(postgres.query, { vault })
  const pageRequest = { after: null, sessionEpochs, max: 1 }
  const { after } = await nextWithoutVector(mongo, { vault, epoch }, embedder.space, pageRequest)
  if (!after) return false
  const operation = mintId()
  const request = { operation, model, dropPrevious: false, awaited: false }
  await acceptReembedding(backend, { account, keyHash, scope: { vault } }, request)
  log.info({ vault, to: embedder.space, operation }, 'vault.brought-along')
  return true
}

function rethrowUnavailable(error: unknown): undefined {
  if (error instanceof Refusal && error.reason !== 'unavailable') return undefined
  throw error
}
