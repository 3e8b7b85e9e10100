import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'
import { nextWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import { clearedSessionEpochs } from '#shared/vault/reembed/reembeddings.postgres.ts'
import {
  dueModelChecks,
  postponeModelCheck,
  type DueModelCheck,
} from '#shared/vault/reembed/vault-models.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Log } from '#shared/core/log.ts'

/** Vaults looked at in one run. */
const movesMax = 50

/**
 * Brings along what was promised to a vault before it moved into another vector space, and stored in the
 * old one after: a file, a copy, a call to a model that was under way. Looks a minute after the move, and
 * ever more rarely for a day; what it finds it promises to embed, unbilled, as an operation of the account.
 *
 * @returns for how many vaults something was left to do.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function reembedLateArrivals(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  let begun = 0
  for (const moved of await dueModelChecks(query, movesMax)) {
    // Looked at again in any case: what this look misses, or cannot do, the next one takes up.
    await postponeModelCheck(query, moved.vault)
    if (await startReembedding(backend, moved)) begun++
  }
  return begun
}

async function startReembedding(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
  { vault, epoch, model, account, keyHash }: DueModelCheck,
): Promise<boolean> {
  const { postgres, mongo, log } = backend
  const embedder = await backend.embedders.get(model).catch(rethrowUnavailable)
  if (!embedder) return false
  const sessionEpochs = await clearedSessionEpochs(postgres.query, vault)
  const pageRequest = { after: null, sessionEpochs, max: 1 }
  const { after } = await nextWithoutVector(mongo, { vault, epoch }, embedder.space, pageRequest)
  if (!after) return false
  const operation = mintId()
  const asked = { operation, model, dropPrevious: false, awaited: false }
  await acceptReembedding(backend, { account, keyHash, scope: { vault } }, asked)
  log.info({ vault, to: embedder.space, operation }, 'vault.brought-along')
  return true
}

function rethrowUnavailable(error: unknown): undefined {
  if (error instanceof Refusal && error.reason !== 'unavailable') return undefined
  throw error
}
