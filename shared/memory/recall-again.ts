import type { Backend } from '#shared/backend.ts'
import type { Embedder } from '#shared/embedding/embedder.ts'
import type { Caller } from '#shared/key/caller.ts'
import type { Memory } from '#shared/memory/memory.ts'
import { audienceOf } from '#shared/org/permitted.ts'
import { sharedVaultOf, type MemberScope } from '#shared/org/scope.ts'
import { sharedEmbedders } from '#shared/org/shared-spaces.ts'
import { placeSeen } from '#shared/recall/image/image-source.ts'
import type { SpaceRef } from '#shared/recall/image/images.ts'

type Recalling = Pick<Backend, 'embedders' | 'images' | 'memories' | 'postgres' | 'now'>

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
