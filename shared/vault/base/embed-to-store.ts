import type { Embedder } from '#shared/domain/embedder.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { DimensionRefusal } from '#shared/models/model-refusal.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { spacesOfOldest } from '#shared/vault/base/memories.mongo.ts'
import { refusal } from '#shared/core/refusal.ts'
import { parseModelOfSpace } from '#shared/models/space-embedders.ts'

/**
 * Embeds texts to be stored, in order. A text without a vector is stored all the same and found by its words: it
 * gets a vector that is similar to no other.
 *
 * @throws Refusal `upstream` when the model does not answer.
 */
export async function embedToStore(
  { embedEach, dimension }: Pick<Embedder, 'embedEach' | 'dimension'>,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[]> {
  if (texts.length === 0) return []
  const outcomes = await embedEach(texts, signal)
  return outcomes.map(outcome =>
    outcome instanceof Float32Array ? outcome : similarToNone(dimension),
  )
}

/** A vector of unit length: an index by cosine has no place for a vector of zeros. */
function similarToNone(dimension: number): Float32Array {
  const vector = new Float32Array(dimension)
  vector[0] = 1
  return vector
}

/** Vaults of a batch of jobs that are looked at while a model is being exchanged. */
const vaultsMax = 5

/**
 * Awaits work with an embedder. When its model answers in another dimension than this process met, and a vault
 * is in that one, the embedder is forgotten, so that the next try finds the right one. Otherwise it stays: a
 * model exchanged by mistake must not scatter a vault over two spaces.
 *
 * @throws DimensionRefusal and other errors of the work; Refusal `upstream` when a vault is in another space.
 */
export async function forgetWrongEmbedder<Result>(
  { embedders, mongo }: { embedders: Embedders; mongo: Pick<Mongo, 'memories'> },
  embedder: Embedder,
  vaults: readonly Pick<VaultScope, 'vault' | 'epoch'>[],
  work: Promise<Result>,
): Promise<Result> {
  try {
    const result = await work
    await refuseOtherSpace(mongo, embedder, vaults)
    return result
  } catch (error) {
    if (!(error instanceof DimensionRefusal)) throw error
    const distinct = [...new Map(vaults.map(scope => [scope.vault, scope])).values()]
    for (const vault of distinct.slice(0, vaultsMax)) {
      const spaces = await spacesOfOldest(mongo, vault).catch((): string[] => [])
      // A vault in both spaces was re-embedded: its model was exchanged on purpose.
      if (!spaces.includes(error.space) || spaces.includes(embedder.space)) continue
      await embedders.forget(embedder)
      break
    }
    throw error
  }
}

/** Vaults whose space is known, as `<vault> <epoch> <space>`. */
const known = new Set<string>()
const knownMax = 100_000

/**
 * Refuses a model whose vectors have other forms or another length than those of a vault: a search would find
 * nothing. A vault without memories, or of other models, takes any space.
 *
 * @throws Refusal `upstream`, until the vault is re-embedded or the environment is put back.
 */
async function refuseOtherSpace(
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
        throw refusal('upstream', 'spaceMoved', { model, space, other })
      if (known.size >= knownMax) known.clear()
      if (spaces.length > 0) known.add(key)
    }),
  )
}
