import { LRUCache } from 'lru-cache'
import { tiers, type Tier, type VaultScope } from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import { partitionIndex } from '#shared/storage/mongo/indexes.ts'

type Counted = Pick<VaultScope, 'epoch' | 'revision'> & { counts: Record<Tier, number> }

/** Counting reads the index alone and still takes 50 ms for 100,000 rows: an unchanged vault is counted once. */
const tierCountCaches = new WeakMap<Mongo['memories'], LRUCache<string, Counted>>()
const cachedVaultsMax = 10_000

/**
 * How many memories of each tier the core vault holds, as of the scope's revision.
 *
 * @param asOf epoch ms: those of a later time are not counted
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function countTiers(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  asOf?: number,
): Promise<Record<Tier, number>> {
  if (asOf !== undefined) return readTierCounts(memories, scope, { $lte: new Date(asOf) })
  const { vault, epoch, revision } = scope
  const vaults =
    tierCountCaches.get(memories) ?? new LRUCache<string, Counted>({ max: cachedVaultsMax })
  tierCountCaches.set(memories, vaults)
  const last = vaults.get(vault)
  if (last?.epoch === epoch && last.revision === revision) return last.counts

  const counts = await readTierCounts(memories, scope)

  vaults.set(vault, { epoch, revision, counts })
  return counts
}

async function readTierCounts(
  memories: Mongo['memories'],
  { vault, epoch }: VaultScope,
  at?: { $lte: Date },
): Promise<Record<Tier, number>> {
  const signal = deadline(memories)
  const [raw = 0, reflections = 0, high = 0] = await Promise.all(
    tiers.map(tier =>
      memories.countDocuments(
        {
          vault: { $eq: vault },
          epoch: { $eq: epoch },
          session: { $eq: '' },
          tier: { $eq: tier },
          ...(at && { at }),
        },
        { hint: partitionIndex, signal },
      ),
    ),
  ).catch(refuseWhenUnreachable)
  return { 1: raw, 2: reflections, 3: high }
}
