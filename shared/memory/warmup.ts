import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/key/caller.ts'
import { tiers } from '#shared/memory/memory.ts'
import { audienceOf } from '#shared/org/permitted.ts'
import { sharedVaultOf } from '#shared/org/scope.ts'
import { sharedEmbedders } from '#shared/org/shared-spaces.ts'
import type { SpaceRef } from '#shared/recall/image/images.ts'

/**
 * Loads an image ahead of its first question; for a member also what they may see of the shared memory.
 *
 * @returns how many memories it holds; null when the vault is larger than this process may hold and
 *   is searched in the database instead.
 */
export async function warmUp(
  { embedders, images }: Pick<Backend, 'embedders' | 'images'>,
  { scope, member }: Pick<Caller, 'scope' | 'member'>,
  session: string | null,
  embeddings: string | undefined,
): Promise<number | null> {
  const { space, dimension } = await embedders.get(embeddings)
  const asked: SpaceRef[] = [{ scope, session, space, dimension }]
  if (member) {
    const shared = { scope: sharedVaultOf(member), session: null, audience: audienceOf(member) }
    const found = await sharedEmbedders({ embedders }, member.orgSpace)
    asked.push(...found.map(one => ({ ...shared, space: one.space, dimension: one.dimension })))
  }
  const loaded = await Promise.all(asked.map(ref => images.get(ref)))
  let held = 0
  for (const image of loaded) {
    if (image === 'too-large') return null
    held += tiers.reduce((sum, tier) => sum + image.blocks[tier].count, 0)
  }
  return held
}
