import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/key/caller.ts'
import { tiers } from '#shared/memory/memory.ts'

/**
 * Loads an image ahead of its first question.
 *
 * @returns how many memories it holds; null when the vault is larger than this process may hold and
 *   is searched in the database instead.
 */
export async function warmUp(
  { embedders, images }: Pick<Backend, 'embedders' | 'images'>,
  { scope }: Caller,
  session: string | null,
  embeddings: string | undefined,
): Promise<number | null> {
  const { space, dimension } = await embedders.get(embeddings)
  const image = await images.get({ scope, session, space, dimension })
  if (image === 'too-large') return null
  return tiers.reduce((sum, tier) => sum + image.blocks[tier].count, 0)
}
