import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope, type MemberScope } from '#shared/domain/member-scope.ts'
import { openSharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import type { IndexRef, VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

type ReloadBackend = {
  embedders: Embedders
  vaultIndexes: VaultIndexes
  memories: MemoryStore
  postgres: Postgres
  now: () => number
}

type RecallSnapshot = {
  ids: readonly string[]
  /** The sessions they are from; null is the core vault. */
  sessions: readonly (string | null)[]
  embeddings: string | undefined
}

/**
 * Memories recalled before, in their current form, in no order. Those that were deleted, have expired or
 * may no longer be seen by the caller are missing. Nothing is embedded or ranked.
 *
 * @throws what `recall` throws.
 */
export async function reloadRecalled(
  backend: ReloadBackend,
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  { ids, sessions, embeddings }: RecallSnapshot,
): Promise<Memory[]> {
  if (ids.length === 0) return []
  const [embedder, shared] = await Promise.all([
    backend.embedders.get(embeddings),
    memberScope ? openSharedEmbedders(backend, memberScope.orgSpace) : [],
  ])
  const memories = await Promise.all([
    ...sessions.map(session => findInPartition(backend, embedder, { scope, session }, ids)),
    ...shared.map(one => findInPartition(backend, one, sharedPartition(memberScope!), ids)),
  ])
  const byId = new Map(memories.flat().map(memory => [memory.id, memory]))
  return [...byId.values()].filter(({ expiresAt = Infinity }) => expiresAt > backend.now())
}

const sharedPartition = (
  member: MemberScope,
): Pick<IndexRef, 'scope' | 'session' | 'audience'> => ({
  scope: toSharedVaultScope(member),
  session: null,
  audience: visibilityOf(member),
})

async function findInPartition(
  { vaultIndexes, memories, postgres }: ReloadBackend,
  { space, dimension }: Embedder,
  partition: Pick<IndexRef, 'scope' | 'session' | 'audience'>,
  ids: readonly string[],
): Promise<Memory[]> {
  const vaultIndex = await vaultIndexes.get({ ...partition, space, dimension })
  if (vaultIndex !== 'too-large') return ids.flatMap(id => vaultIndex.find(id) ?? [])
  return memories.byIds(partition.scope, await visiblePartition(postgres, partition), space, ids)
}
