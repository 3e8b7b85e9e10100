import type { Caller } from '#shared/access/caller.ts'
import { tiers } from '#shared/domain/memory.ts'
import {
  openSharedEmbedders,
  sharedPartition,
  undefinedIfUnavailable,
} from '#shared/vault/base/shared-embedders.ts'
import type { IndexRef, VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { plainText } from '#shared/models/model-refusal.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/**
 * Loads the index of a vault before its first search; for a member also of what they may see of the shared
 * memory. Embeds one word, so that a server loads its model.
 *
 * @returns how many memories it holds; null when the vault is too large and is searched in the database.
 */
export async function warmUp(
  { embedders, vaultIndexes }: { embedders: Embedders; vaultIndexes: VaultIndexes },
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  session: string | null,
  embeddings: string | undefined,
): Promise<number | null> {
  const { space, dimension, embedQuery } = await embedders.get(embeddings)
  // A search that follows may use the index without it: a model that fails here fails nothing.
  const warming = undefinedIfUnavailable(embedQuery(plainText))
  const spaceRefs: IndexRef[] = [{ scope, session, space, dimension }]
  if (memberScope) {
    const shared = sharedPartition(memberScope)
    const sharedEmbedders = await openSharedEmbedders({ embedders }, memberScope.orgSpace)
    spaceRefs.push(
      ...sharedEmbedders.map(one => ({ ...shared, space: one.space, dimension: one.dimension })),
    )
  }
  const [loaded] = await Promise.all([
    Promise.all(spaceRefs.map(ref => vaultIndexes.get(ref))),
    warming,
  ])
  let memoriesLoaded = 0
  for (const vaultIndex of loaded) {
    if (vaultIndex === 'too-large') return null
    memoriesLoaded += tiers.reduce((sum, tier) => sum + vaultIndex.byTier[tier].count, 0)
  }
  return memoriesLoaded
}
