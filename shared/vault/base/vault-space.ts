import type { Embedder } from '#shared/domain/embedder.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { Refusal } from '#shared/core/errors.ts'
import { parseModelOfSpace } from '#shared/models/space-embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { spacesOfOldest } from '#shared/vault/base/oldest-memory.mongo.ts'

/** Vaults of which the space is known, as `<vault> <epoch> <space>`; a vault is looked at once by a process. */
const known = new Set<string>()
const knownMax = 100_000

/**
 * Refuses to search a vault, or to add to it, with a model that is set up otherwise than for its memories: with
 * other forms of queries and texts, or another length of its vectors. In the other space nothing would be found.
 * A vault without memories, and one of other models, takes any space.
 *
 * @throws Refusal `upstream`, until the vault is re-embedded or the environment is put back.
 */
export async function refuseOtherSpace(
  mongo: Pick<Mongo, 'memories'>,
  { model, space }: Pick<Embedder, 'model' | 'space'>,
  vaults: readonly Pick<VaultScope, 'vault' | 'epoch'>[],
): Promise<void> {
  if (model === 'local') return
  const keyOf = ({ vault, epoch }: (typeof vaults)[number]) => `${vault} ${epoch} ${space}`
  const unknown = new Map(vaults.map(scope => [keyOf(scope), scope]))
  await Promise.all(
    Array.from(unknown, async ([key, scope]) => {
      if (known.has(key)) return
      // A store that is out of reach refuses what follows.
      const spaces = await spacesOfOldest(mongo, scope).catch((): string[] => [])
      const other = spaces.find(one => one !== space && parseModelOfSpace(one) === model)
      if (other !== undefined && !spaces.includes(space))
        throw otherSpaceRefusal(model, space, other)
      if (known.size >= knownMax) known.clear()
      if (spaces.length > 0) known.add(key)
    }),
  )
}

const otherSpaceRefusal = (model: string, space: string, other: string): Refusal =>
  new Refusal(
    'upstream',
    `The embedding model ${model} embeds into ${space} now, and the memories of this vault stand in ${other}`,
    'POST /v1/memory/reembed moves the vault; or the operator puts back what EMBEDDINGS_QUERY_PREFIX, ' +
      'EMBEDDINGS_PASSAGE_PREFIX and EMBEDDINGS_DIMENSIONS were, both prefixes empty for a vault without them',
  )
