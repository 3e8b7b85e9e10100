import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { audienceOf } from '#shared/domain/visibility.ts'
import { sharedVaultOf, type MemberScope } from '#shared/domain/member-scope.ts'
import { sharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { placeSeen } from '#shared/vault/read/index-source.ts'
import type { SpaceRef, Images } from '#shared/search/index/vault-indexes.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

type Recalling = {
  embedders: Embedders
  images: Images
  memories: Memories
  postgres: Postgres
  now: () => number
}

type Recalled = {
  ids: readonly string[]
  /** The places they are from: the core vault is null. */
  sessions: readonly (string | null)[]
  embeddings: string | undefined
}

/**
 * Memories recalled before, as they are now, in no order. Those that have been deleted since, are over, or
 * are hidden from the caller by now, are missing. Nothing is embedded or ranked.
 *
 * @throws what `recall` throws.
 */
export async function recallAgain(
  backend: Recalling,
  { scope, member }: Pick<Caller, 'scope' | 'member'>,
  { ids, sessions, embeddings }: Recalled,
): Promise<Memory[]> {
  if (ids.length === 0) return []
  const [embedder, shared] = await Promise.all([
    backend.embedders.get(embeddings),
    member ? sharedEmbedders(backend, member.orgSpace) : [],
  ])
  const found = await Promise.all([
    ...sessions.map(session => memoriesIn(backend, embedder, { scope, session }, ids)),
    ...shared.map(one => memoriesIn(backend, one, sharedPlaceOf(member!), ids)),
  ])
  const byId = new Map(found.flat().map(memory => [memory.id, memory]))
  return [...byId.values()].filter(({ expiresAt = Infinity }) => expiresAt > backend.now())
}

const sharedPlaceOf = (member: MemberScope): Pick<SpaceRef, 'scope' | 'session' | 'audience'> => ({
  scope: sharedVaultOf(member),
  session: null,
  audience: audienceOf(member),
})

async function memoriesIn(
  { images, memories, postgres }: Recalling,
  { space, dimension }: Embedder,
  place: Pick<SpaceRef, 'scope' | 'session' | 'audience'>,
  ids: readonly string[],
): Promise<Memory[]> {
  const image = await images.get({ ...place, space, dimension })
  if (image !== 'too-large') return ids.flatMap(id => image.find(id) ?? [])
  return memories.byIds(place.scope, await placeSeen(postgres, place), space, ids)
}
