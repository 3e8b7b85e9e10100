import type { Embedder } from '#shared/domain/embedder.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  addVectors,
  bareTexts,
  countHaving,
  countLacking,
  dropOtherVectors,
  nextLacking,
  nextWithOthers,
} from '#shared/vault/reembed/spaces.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  finishOperation,
  reportProgress,
  type Outcome,
} from '#shared/operations/operation-rows.postgres.ts'
import { insertOperations, stateOf, unbilled } from '#shared/operations/operations.postgres.ts'
import { noteSharedSpace } from '#shared/vault/base/org-spaces.postgres.ts'
import {
  advanceReembedding,
  clearedSessionsOf,
  dropReembedding,
  findReembedding,
  insertReembedding,
  type Reembedding,
  type ReembeddingStep,
} from '#shared/vault/reembed/reembeddings.postgres.ts'
import { moveVault } from '#shared/vault/reembed/vault-models.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { ReembedJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** One call to a provider, and the memories that become searchable together. */
const stepMemories = 256

type Asker = Pick<Caller, 'account' | 'keyHash'> & { scope: Pick<Caller['scope'], 'vault'> }

/**
 * Promises to give every memory of a vault, in all its sessions and tiers, a vector of another model.
 * Accepting the same operation again changes nothing. Nothing is billed: the memories are stored and
 * paid for.
 */
export async function acceptReembedding(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, keyHash, scope }: Asker,
  asked: { operation: string; model: string; dropPrevious: boolean; awaited: boolean },
): Promise<void> {
  const { operation: id, model, dropPrevious, awaited } = asked
  const { vault } = scope
  await postgres.transaction(async tx => {
    if ((await stateOf(tx.query, account, id)) !== undefined) return
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
        ...unbilled,
      },
    ])
    const { epoch, pending } = accepted!
    await insertReembedding(tx.query, { operation: id, vault, epoch, model, dropPrevious })
    const job = { id: memoryIdOf(id, 0), data: { operation: id, step: 0 }, priority: -pending }
    await queue.send(tx, 'reembed', [job])
  })
}

type Embedding = Stores & { embedders: Embedders; queue: Queue }

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
  backend: Embedding,
  { operation, step }: ReembedJob,
  signal?: AbortSignal,
): Promise<void> {
  const { postgres, mongo, embedders } = backend
  const found = await findReembedding(postgres.query, operation, step)
  if (!found) return
  if (found.epoch !== found.currentEpoch) return end(backend, found, cleared)

  const embedder = await embedders.get(found.model)
  const ids = found.places.flatMap(place => place.ids)
  const total = step === 0 ? await countLacking(mongo, found, embedder.space) : undefined
  const done = found.dropping
    ? await dropOthers(backend, found, embedder, ids)
    : await embedBare(backend, found, embedder, ids, signal)
  const next = await nextStep(backend, found, embedder)

  await postgres.transaction(async tx => {
    const embedded = found.embedded + done.embedded
    const progress = { done: embedded, ...(total !== undefined && { total }) }
    await reportProgress(tx.query, operation, progress)
    const following = next ?? { dropping: found.dropping, places: [], after: null }
    if (!(await advanceReembedding(tx.query, found, done, following))) return
    if (ids.length > 0) {
      await changeVault(
        tx,
        found.vault,
        found.places.map(({ session, ids: stored }) => ({
          session,
          stored,
          unsaid: true,
          // Forgotten before they are read again: a space they have left does not find them.
          ...(found.dropping && { removed: stored }),
        })),
      )
    }
    // All of it is there: before the first memory leaves the space it was in, nobody looks in that.
    if (!found.dropping && (!next || next.dropping)) {
      await noteSharedSpace(tx.query, found.vault, embedder.space)
      await moveVault(tx.query, found.vault, found.model)
    }
    if (next) return sendStep(backend, tx, { operation, step: step + 1 })
    const counted = { ...found, embedded, dropped: found.dropped + done.dropped }
    await finish(tx, counted, completed(counted, embedder))
  })
}

type Done = { embedded: number; dropped: number }

async function embedBare(
  { mongo }: { mongo: Mongo },
  found: Reembedding,
  embedder: Embedder,
  ids: readonly string[],
  signal?: AbortSignal,
): Promise<Done> {
  if (ids.length === 0) return { embedded: 0, dropped: 0 }
  const bare = await bareTexts(mongo, found, embedder.space, ids)
  const texts = bare.map(({ text }) => text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  const added = bare.map((text, i) => ({ ...text, vector: vectors[i]! }))
  await addVectors(mongo, found, embedder.space, added)
  return { embedded: await countHaving(mongo, found, embedder.space, ids), dropped: 0 }
}

async function dropOthers(
  { mongo }: { mongo: Mongo },
  found: Reembedding,
  { space }: Embedder,
  ids: readonly string[],
): Promise<Done> {
  await dropOtherVectors(mongo, found, space, ids)
  return { embedded: 0, dropped: ids.length }
}

/** @returns null when nothing is left to do. */
async function nextStep(
  { mongo, postgres }: Stores,
  found: Reembedding,
  { space }: Embedder,
): Promise<ReembeddingStep | null> {
  const sessionEpochs = await clearedSessionsOf(postgres.query, found.vault)
  const look = { sessionEpochs, max: stepMemories }
  const { after } = found
  if (!found.dropping) {
    const onward = await nextLacking(mongo, found, space, { ...look, after })
    if (onward.after) return { dropping: false, ...onward }
    // From the beginning again, for what arrived behind us.
    const again = after && (await nextLacking(mongo, found, space, { ...look, after: null }))
    if (again?.after) return { dropping: false, ...again }
    if (!found.dropPrevious) return null
  }
  const start = found.dropping ? after : null
  const others = await nextWithOthers(mongo, found, space, { ...look, after: start })
  return others.after ? { dropping: true, ...others } : null
}

const sendStep = ({ queue }: { queue: Queue }, tx: Transaction, job: ReembedJob): Promise<void> =>
  queue.send(tx, 'reembed', [
    { id: memoryIdOf(job.operation, job.step), data: job, priority: -job.step },
  ])

async function end(
  { postgres }: { postgres: Postgres },
  found: Reembedding,
  outcome: Outcome,
): Promise<void> {
  await postgres.transaction(tx => finish(tx, found, outcome))
}

async function finish(
  tx: Transaction,
  { operation }: Reembedding,
  outcome: Outcome,
): Promise<void> {
  await finishOperation(tx.query, operation, outcome)
  await dropReembedding(tx.query, operation)
}

const cleared: Outcome = {
  status: 409,
  body: { error: 'The vault was cleared meanwhile', hint: 'What is stored now may be re-embedded' },
}

function completed(
  { key, model, operation, embedded, dropped }: Reembedding,
  { dimension }: Embedder,
): Outcome {
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
