import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/errors.ts'
import { mintId } from '#shared/ids.ts'
import { acceptReembedding } from '#shared/memory/reembed.ts'
import { nextLacking } from '#shared/mongo/spaces.ts'
import { clearedSessionsOf } from '#shared/postgres/reembeddings.ts'
import { dueMoves, postponeLook, type Moved } from '#shared/postgres/vault-models.ts'

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
export async function bringAlong(
  backend: Pick<Backend, 'postgres' | 'mongo' | 'queue' | 'embedders' | 'log'>,
): Promise<number> {
  const { query } = backend.postgres
  let begun = 0
  for (const moved of await dueMoves(query, movesMax)) {
    // Looked at again in any case: what this look misses, or cannot do, the next one takes up.
    await postponeLook(query, moved.vault)
    if (await setsOut(backend, moved)) begun++
  }
  return begun
}

async function setsOut(
  backend: Pick<Backend, 'postgres' | 'mongo' | 'queue' | 'embedders' | 'log'>,
  { vault, epoch, model, account, keyHash }: Moved,
): Promise<boolean> {
  const { postgres, mongo, log } = backend
  const embedder = await backend.embedders.get(model).catch(unlessAway)
  if (!embedder) return false
  const sessionEpochs = await clearedSessionsOf(postgres.query, vault)
  const look = { after: null, sessionEpochs, max: 1 }
  const { after } = await nextLacking(mongo, { vault, epoch }, embedder.space, look)
  if (!after) return false
  const operation = mintId()
  const asked = { operation, model, dropPrevious: false, awaited: false }
  await acceptReembedding(backend, { account, keyHash, scope: { vault } }, asked)
  log.info({ vault, to: embedder.space, operation }, 'vault.brought-along')
  return true
}

function unlessAway(error: unknown): undefined {
  if (error instanceof Refusal && error.reason !== 'unavailable') return undefined
  throw error
}
