import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'
import { nextWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import { findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import {
  dueModelChecks,
  postponeModelCheck,
  type DueModelCheck,
} from '#shared/vault/reembed/vault-models.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Log } from '#shared/core/log.ts'

/** Vaults checked in one run. */
const movesMax = 50

/**
 * Re-embeds memories that were stored in the old vector space after their vault had moved to another model,
 * by work that was accepted before: a file, a copy, a running model call. Vaults are checked a minute after
 * the move and then less and less often for a day; the re-embedding is an unbilled operation of the account.
 *
 * @returns for how many vaults a re-embedding was accepted
 * @throws Refusal `unavailable` when a store is out of reach.
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
