import { parseModelOfSpace } from '#shared/models/space-embedders.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import {
  hasUnconsolidated,
  findInGivenOrder,
  spacesOfFirstUnconsolidated,
  streamUnconsolidated,
  type UnconsolidatedMemory,
} from '#shared/vault/consolidate/reflections.mongo.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import {
  clearDebt,
  findLease,
  lockEpoch,
  insertLease,
  leasedIds,
} from '#shared/vault/consolidate/leases.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import { batchRule, type BatchTotals } from '#shared/vault/consolidate/batch-rule.ts'
import { consolidationLock, type Lease, type SourceTier, type Span } from '#shared/domain/lease.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

export type Checkout = {
  /** The UUIDv7 this batch gets; asking again under the same one gets the same batch. */
  batch: string
  tier: SourceTier
  /** Most tokens in the batch; without it the tier's own rule holds. */
  maxTokens: number | undefined
  /** Kept with the bill. */
  session: string | null
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
}

export type Batch = Lease & { memories: UnconsolidatedMemory[]; tokens: number }

type CheckoutBackend = Stores & { embedders: Embedders }

/**
 * Lends the oldest memories of a tier of the core vault that no reflection covers and nobody else holds.
 * One checkout per vault at a time: choosing, lease and bill are one transaction.
 *
 * @returns null when nothing is left to consolidate; then nothing is lent or billed.
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when its provider does not
 *   answer, `unavailable` when a store is out of reach.
 */
export async function checkOut(
  { postgres, mongo, embedders }: CheckoutBackend,
  { scope, account, keyHash, keyRow }: Caller,
  { batch, tier, maxTokens, session, embeddings }: Checkout,
): Promise<Batch | null> {
  const { space, model } = await embedders.get(embeddings)

  return postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, scope.vault, consolidationLock)
    const existingBatch = await findExistingBatch({ mongo }, tx, scope, batch)
    if (existingBatch) return existingBatch

    const excludedIds = await leasedIds(tx, scope, tier)
    const memories = await selectOldest({ mongo }, scope, { tier, space, maxTokens, excludedIds })
    if (memories.length === 0) {
      if (excludedIds.size === 0 && hasDebt(keyRow, tier))
        await recomputeDebt({ mongo }, tx, scope, tier)
      return null
    }

    const lease = {
      batch,
      tier,
      model,
      sourceIds: memories.map(({ id }) => id),
      covers: spanOf(memories),
    }
    const expiresAt = await insertLease(tx, scope, lease)
    const tokens = tokensOf(memories)
    await recordBill(tx, {
      id: batch,
      account,
      vault: scope.vault,
      keyHash,
      kind: 'checkout',
      session,
      memoryTokens: tokens,
    })
    return { ...lease, expiresAt, memories, tokens }
  })
}

/** A checkout that found nothing, while something waits in another vault space. */
export type UnconsolidatedInOtherSpace = {
  /** The model that was looked in the space of. */
  requestedModel: string
  /** The model that finds what waits; the name of its space where the model cannot be told. */
  model: string
}

/**
 * Where memories wait that a checkout with these `embeddings` cannot see; null when none do.
 *
 * @throws what `checkOut` throws.
 */
export async function findUnconsolidatedInOtherSpace(
  { mongo, embedders }: Pick<CheckoutBackend, 'mongo' | 'embedders'>,
  { scope, keyRow }: Pick<Caller, 'scope' | 'keyRow'>,
  { tier, embeddings }: Pick<Checkout, 'tier' | 'embeddings'>,
): Promise<UnconsolidatedInOtherSpace | null> {
  if (!hasDebt(keyRow, tier)) return null
  const { space, model: requestedModel } = await embedders.get(embeddings)
  const [otherSpace] =
    (await spacesOfFirstUnconsolidated(mongo, scope, { tier, except: space })) ?? []
  return otherSpace === undefined
    ? null
    : { requestedModel, model: parseModelOfSpace(otherSpace) ?? otherSpace }
}

/** The batch of a checkout whose answer was lost: its request came again under the id it had. */
async function findExistingBatch(
  { mongo }: { mongo: Mongo },
  { query }: Transaction,
  scope: VaultScope,
  batch: string,
): Promise<Batch | undefined> {
  const lease = await findLease(query, scope, batch)
  if (!lease) return undefined
  const memories = await findInGivenOrder(mongo, scope, lease.sourceIds)
  return { ...lease, memories, tokens: tokensOf(memories) }
}

const hasDebt = ({ rawUnits, tier2Count }: Caller['keyRow'], tier: SourceTier): boolean =>
  (tier === 1 ? rawUnits : tier2Count) > 0

/**
 * Nothing waits and nothing is lent, yet the debt says otherwise: a deletion and a commit that died met
 * between the stores. Left alone it would suggest a consolidation for ever that finds nothing.
 */
async function recomputeDebt(
  { mongo }: { mongo: Mongo },
  tx: Transaction,
  scope: VaultScope,
  tier: SourceTier,
): Promise<void> {
  // What is stored meanwhile is added to the debt only after this transaction.
  const epoch = await lockEpoch(tx, scope.vault)
  if (epoch === scope.epoch && !(await hasUnconsolidated(mongo, scope, tier))) {
    await clearDebt(tx, scope.vault, tier)
  }
}

type BatchSelection = {
  tier: SourceTier
  space: string
  maxTokens: number | undefined
  excludedIds: ReadonlySet<string>
}

async function selectOldest(
  { mongo }: { mongo: Mongo },
  scope: VaultScope,
  { tier, space, maxTokens, excludedIds }: BatchSelection,
): Promise<UnconsolidatedMemory[]> {
  const fitsBatch = batchRule(tier, maxTokens)
  const sum: BatchTotals = { count: 0, tokens: 0, importance: 0 }
  const chosen: UnconsolidatedMemory[] = []
  for await (const memory of streamUnconsolidated(mongo, scope, { tier, space })) {
    if (excludedIds.has(memory.id)) continue
    if (!fitsBatch(sum, memory)) break
    chosen.push(memory)
    sum.count++
    sum.tokens += memory.tokens
    sum.importance += memory.importance
  }
  return chosen
}

const tokensOf = (memories: readonly UnconsolidatedMemory[]): number =>
  memories.reduce((sum, { tokens }) => sum + tokens, 0)

function spanOf(memories: readonly UnconsolidatedMemory[]): Span {
  const { covers } = memories[0]!
  return memories.reduce(
    (span, { covers: { from, to } }) => ({
      from: Math.min(span.from, from),
      to: Math.max(span.to, to),
    }),
    covers,
  )
}
