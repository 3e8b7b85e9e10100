import type { Embedder } from '#shared/domain/embedder.ts'
import { mintId } from '#shared/core/ids.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'
import { nextWithoutVector, spacesOfMemory } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import {
  hasOrgs,
  recordSharedSpace,
  sharedVaultsOutsideSpace,
  type SharedVaultOutsideSpace,
} from '#shared/vault/base/org-spaces.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Log } from '#shared/core/log.ts'

/** Organizations of one run. */
const vaultsPerRun = 50

/**
 * Accepts a re-embedding, as an operation of the owner's account, for each shared vault outside the space of the
 * default embedding model. Records the space of a vault that is inside.
 *
 * @returns how many were accepted.
 * @throws Refusal `upstream` when the embedding model does not answer; `unavailable`.
 */
export async function reembedSharedVaults(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  if (!(await hasOrgs(query))) return 0
  const embedder = await backend.embedders.get()
  let startedCount = 0
  for (const shared of await sharedVaultsOutsideSpace(query, embedder.space, vaultsPerRun)) {
    if (await startReembedding(backend, shared, embedder)) startedCount++
  }
  return startedCount
}

async function startReembedding(
  backend: Stores & { queue: Queue; log: Log },
  { org, account, keyHash, vault, epoch, space }: SharedVaultOutsideSpace,
  { model, space: targetSpace }: Embedder,
): Promise<boolean> {
  const { postgres, mongo, log } = backend
  const page = { after: null, sessionEpochs: new Map<string, number>(), max: 1 }
  const { after } = await nextWithoutVector(mongo, { vault, epoch }, targetSpace, page)
  if (!after) {
    await recordSharedSpace(postgres.query, vault, targetSpace)
    return false
  }
  const [known] = space === null ? await spacesOfMemory(mongo, { vault, epoch }, after.id) : []
  if (known) await recordSharedSpace(postgres.query, vault, known)
  const operation = mintId()
  const request = { operation, model, dropPrevious: true, awaited: false }
  await acceptReembedding(backend, { account, keyHash, scope: { vault } }, request)
  log.info({ org, vault, from: space ?? known, to: targetSpace, operation }, 'org.reembedding')
  return true
}
