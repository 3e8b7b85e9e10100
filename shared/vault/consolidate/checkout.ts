import { modelOfSpace } from '#shared/models/space-embedders.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import {
  isWaiting,
  memoriesInOrder,
  spacesOfOneWaiting,
  waitingMemories,
  type Waiting,
} from '#shared/vault/consolidate/reflections.mongo.ts'
import { recordBill } from '#shared/billing/bill.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import {
  clearDebt,
  findLease,
  holdEpoch,
  insertLease,
  lentIds,
} from '#shared/vault/consolidate/leases.postgres.ts'
import { holdVault } from '#shared/vault/base/vaults.postgres.ts'
import { ruleOf, type Taken } from '#shared/vault/consolidate/batch.ts'
import { consolidation, type Lease, type SourceTier, type Span } from '#shared/domain/lease.ts'
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

export type Batch = Lease & { memories: Waiting[]; tokens: number }

type Lending = Stores & { embedders: Embedders }

/**
 * Lends the oldest memories of a tier of the core vault that no reflection covers and nobody else holds.
 * One checkout per vault at a time: choosing, lease and bill are one transaction.
 *
 * @returns null when nothing is left to consolidate; then nothing is lent or billed.
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when its provider does not
 *   answer, `unavailable` when a store is out of reach.
 */
export async function checkOut(
  { postgres, mongo, embedders }: Lending,
  { scope, account, keyHash, row }: Caller,
  { batch, tier, maxTokens, session, embeddings }: Checkout,
): Promise<Batch | null> {
  const { space, model } = await embedders.get(embeddings)

  return postgres.transaction(async tx => {
    await holdVault(tx, scope.vault, consolidation)
    const lent = await lentBefore({ mongo }, tx, scope, batch)
    if (lent) return lent

    const taken = await lentIds(tx, scope, tier)
    const memories = await oldest({ mongo }, scope, { tier, space, maxTokens, taken })
    if (memories.length === 0) {
      if (taken.size === 0 && owes(row, tier)) await levelDebt({ mongo }, tx, scope, tier)
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
export type WaitingElsewhere = {
  /** The model that was looked in the space of. */
  asked: string
  /** The model that finds what waits; the name of its space where the model cannot be told. */
  model: string
}

/**
 * Where memories wait that a checkout with these `embeddings` cannot see; null when none do.
 *
 * @throws what `checkOut` throws.
 */
export async function waitingElsewhere(
  { mongo, embedders }: Pick<Lending, 'mongo' | 'embedders'>,
  { scope, row }: Pick<Caller, 'scope' | 'row'>,
  { tier, embeddings }: Pick<Checkout, 'tier' | 'embeddings'>,
): Promise<WaitingElsewhere | null> {
  if (!owes(row, tier)) return null
  const { space, model: asked } = await embedders.get(embeddings)
  const [other] = (await spacesOfOneWaiting(mongo, scope, { tier, except: space })) ?? []
  return other === undefined ? null : { asked, model: modelOfSpace(other) ?? other }
}

/** The batch of a checkout whose answer was lost: its request came again under the id it had. */
async function lentBefore(
  { mongo }: { mongo: Mongo },
  { query }: Transaction,
  scope: VaultScope,
  batch: string,
): Promise<Batch | undefined> {
  const lease = await findLease(query, scope, batch)
  if (!lease) return undefined
  const memories = await memoriesInOrder(mongo, scope, lease.sourceIds)
  return { ...lease, memories, tokens: tokensOf(memories) }
}

const owes = ({ rawUnits, tier2Count }: Caller['row'], tier: SourceTier): boolean =>
  (tier === 1 ? rawUnits : tier2Count) > 0

/**
 * Nothing waits and nothing is lent, yet the debt says otherwise: a deletion and a commit that died met
 * between the stores. Left alone it would suggest a consolidation for ever that finds nothing.
 */
async function levelDebt(
  { mongo }: { mongo: Mongo },
  tx: Transaction,
  scope: VaultScope,
  tier: SourceTier,
): Promise<void> {
  // What is stored meanwhile is added to the debt only after this transaction.
  const epoch = await holdEpoch(tx, scope.vault)
  if (epoch === scope.epoch && !(await isWaiting(mongo, scope, tier))) {
    await clearDebt(tx, scope.vault, tier)
  }
}

type Choice = {
  tier: SourceTier
  space: string
  maxTokens: number | undefined
  taken: ReadonlySet<string>
}

async function oldest(
  { mongo }: { mongo: Mongo },
  scope: VaultScope,
  { tier, space, maxTokens, taken }: Choice,
): Promise<Waiting[]> {
  const belongs = ruleOf(tier, maxTokens)
  const sum: Taken = { count: 0, tokens: 0, importance: 0 }
  const chosen: Waiting[] = []
  for await (const memory of waitingMemories(mongo, scope, { tier, space })) {
    if (taken.has(memory.id)) continue
    if (!belongs(sum, memory)) break
    chosen.push(memory)
    sum.count++
    sum.tokens += memory.tokens
    sum.importance += memory.importance
  }
  return chosen
}

const tokensOf = (memories: readonly Waiting[]): number =>
  memories.reduce((sum, { tokens }) => sum + tokens, 0)

function spanOf(memories: readonly Waiting[]): Span {
  const { covers } = memories[0]!
  return memories.reduce(
    (span, { covers: { from, to } }) => ({
      from: Math.min(span.from, from),
      to: Math.max(span.to, to),
    }),
    covers,
  )
}
