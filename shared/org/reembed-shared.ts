import type { Embedder } from '#shared/domain/embedder.ts'
import { mintId } from '#shared/core/ids.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'
import { nextLacking, spacesOfMemory } from '#shared/vault/reembed/spaces.mongo.ts'
import {
  isAnyOrg,
  noteSharedSpace,
  sharedElsewhere,
  type Elsewhere,
} from '#shared/vault/base/org-spaces.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Log } from '#shared/core/log.ts'

/** Organizations looked after in one run. */
const lookedMax = 50

/**
 * Looks after shared vaults that are not in the space of the service's embedding model, since the
 * operator has chosen another one: promises to bring each there, as an operation of the owner's account.
 * One that is there already, as a new one is, is noted as that.
 *
 * @returns how many set out.
 * @throws Refusal `upstream` when the embedding model does not answer; `unavailable`.
 */
export async function bringIntoSpace(
  backend: Stores & { queue: Queue; embedders: Embedders; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  if (!(await isAnyOrg(query))) return 0
  const embedder = await backend.embedders.get()
  let begun = 0
  for (const shared of await sharedElsewhere(query, embedder.space, lookedMax)) {
    if (await setsOut(backend, shared, embedder)) begun++
  }
  return begun
}

async function setsOut(
  backend: Stores & { queue: Queue; log: Log },
  { org, account, keyHash, vault, epoch, space }: Elsewhere,
  { model, space: wanted }: Embedder,
): Promise<boolean> {
  const { postgres, mongo, log } = backend
  const look = { after: null, sessionEpochs: new Map<string, number>(), max: 1 }
  const { after } = await nextLacking(mongo, { vault, epoch }, wanted, look)
  if (!after) {
    await noteSharedSpace(postgres.query, vault, wanted)
    return false
  }
  const [known] = space === null ? await spacesOfMemory(mongo, { vault, epoch }, after.id) : []
  if (known) await noteSharedSpace(postgres.query, vault, known)
  const operation = mintId()
  const asked = { operation, model, dropPrevious: true, awaited: false }
  await acceptReembedding(backend, { account, keyHash, scope: { vault } }, asked)
  log.info({ org, vault, from: space ?? known, to: wanted, operation }, 'org.reembedding')
  return true
}
