import type { Embedder } from '#shared/domain/embedder.ts'
import { providerNamePattern } from '#shared/core/provider-registry.ts'
import type { Embedders } from '#shared/models/embedders.ts'

export type SpaceEmbedders = {
  /** One embedder per space that is still available, the service's default if none is. */
  embedders: Embedder[]
  unavailable: { space: string; reason: string }[]
}

/**
 * Finds the embedders of vault spaces by the model in the name of the space.
 *
 * @throws Refusal `upstream` when the model of a space does not answer.
 */
export async function resolveSpaceEmbedders(
  embedders: Embedders,
  spaces: readonly string[],
): Promise<SpaceEmbedders> {
  const sameSpace: Embedder[] = []
  const unavailable: SpaceEmbedders['unavailable'] = []
  for (const space of spaces) {
    const embedder = await resolveEmbedder(embedders, space)
    if (typeof embedder === 'string') unavailable.push({ space, reason: embedder })
    else sameSpace.push(embedder)
  }
  if (sameSpace.length === 0) sameSpace.push(await embedders.get())
  return { embedders: sameSpace, unavailable }
}

/** @returns the embedder, or why there is none. */
async function resolveEmbedder(embedders: Embedders, space: string): Promise<Embedder | string> {
  const defaultEmbedder = await embedders.get()
  if (defaultEmbedder.space === space) return defaultEmbedder
  const model = parseModelOfSpace(space)
  if (!model) return 'its model cannot be told from its name'
  const unavailableReason = embedders.unavailableReason(model)
  if (unavailableReason !== undefined) return unavailableReason
  const embedder = await embedders.get(model)
  return embedder.space === space ? embedder : `${model} embeds into ${embedder.space} now`
}

/** Whether a space has forms of queries and texts. */
export const hasForms = (space: string): boolean => /_p[0-9a-f]{8}$/.test(space)

/** The model in the name of a space: `__` is `/`, other characters are `_` and hex; dimension and forms follow. */
export function parseModelOfSpace(space: string): string | undefined {
  if (space.startsWith('local_')) return 'local'
  const [, name = ''] =
    /^((?:[A-Za-z0-9-]|__|_[0-9a-f]{2})+)-\d+(?:_p[0-9a-f]{8})?$/.exec(space) ?? []
  const model = name.replaceAll(/__|_([0-9a-f]{2})/g, (_, hex?: string) =>
    hex === undefined ? '/' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return providerNamePattern.test(model.split('/', 1)[0]!) && model.includes('/')
    ? model
    : undefined
}
