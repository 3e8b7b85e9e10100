import type { Embedder } from '#shared/domain/embedder.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { DimensionRefusal } from '#shared/models/dimension-refusal.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { spacesOfOldest } from '#shared/vault/base/oldest-memory.mongo.ts'
import { refuseOtherSpace } from '#shared/vault/base/vault-space.ts'

/** Of a batch of jobs: while a model is exchanged, each try reads one memory of so many. */
const vaultsMax = 5

/**
 * Work with an embedder. Where its model answers in another dimension than it had when this process met it,
 * and a vault stands in that one, the process has met a wrong model: the embedder is forgotten, so that the
 * next request, or the next try of the job, finds the right one. In all other cases it stays: a model that
 * was exchanged by mistake must not scatter a vault over two spaces.
 *
 * @param vaults those that the work is for
 * @throws what the work throws, DimensionRefusal included; Refusal `upstream` where a vault stands in another
 *   space of the model.
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
