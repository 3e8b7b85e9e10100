import type { Caller } from '#shared/access/caller.ts'
import { tiers } from '#shared/domain/memory.ts'
import { audienceOf } from '#shared/domain/visibility.ts'
import { sharedVaultOf } from '#shared/domain/member-scope.ts'
import { sharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import type { SpaceRef, Images } from '#shared/search/index/vault-indexes.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/**
 * Loads an image ahead of its first question; for a member also what they may see of the shared memory.
 *
 * @returns how many memories it holds; null when the vault is larger than this process may hold and
 *   is searched in the database instead.
 */
export async function warmUp(
  { embedders, images }: { embedders: Embedders; images: Images },
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
