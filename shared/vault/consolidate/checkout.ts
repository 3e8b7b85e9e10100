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
  insertLease,
  leasedIds,
} from '#shared/vault/consolidate/leases.postgres.ts'
import { lockVault, takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import { consolidationLock, type Lease, type SourceTier, type Span } from '#shared/domain/lease.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'

type Checkout = {
  /** The UUIDv7 this batch gets; the same request sent again gets the same batch. */
  batch: string
  tier: SourceTier
  /** Most tokens in the batch; undefined: the tier's own rule. */
  maxTokens: number | undefined
  /** For the bill. */
  session: string | null
  /** Embedding model that names the vault space. */
  embeddings: string | undefined
}

export type Batch = Lease & { memories: UnconsolidatedMemory[]; tokens: number }

/**
 * Leases a batch: the oldest memories of a tier of the core vault that no reflection covers and no other lease
 * holds. Selection, lease and bill are one transaction.
 *
 * @returns null, with nothing leased or billed, when nothing is left to consolidate.
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when its provider does not
 *   answer, `unavailable`.
 */
export async function checkOut(
  { postgres, mongo, embedders }: Stores & { embedders: Embedders },
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
        await clearUnfoundedDebt({ mongo }, tx, scope, tier)
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

/** An empty checkout, while memories of another vault space are unconsolidated. */
export type UnconsolidatedInOtherSpace = {
  /** The model whose space was searched. */
  requestedModel: string
  /** The model of the other space; the space's name where its model is unknown. */
  model: string
}

/**
 * Another vault space with unconsolidated memories that a checkout with these `embeddings` does not see.
 *
 * @throws as `checkOut`.
 */
export async function findUnconsolidatedInOtherSpace(
  { mongo, embedders }: Pick<Stores & { embedders: Embedders }, 'mongo' | 'embedders'>,
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

/** The batch of this request, when it was sent before and its response was lost. */
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
 * Clears a debt that counts memories although none is unconsolidated or leased: the result of a process that
 * died between the stores. It would suggest empty consolidations forever.
 */
async function clearUnfoundedDebt(
  { mongo }: { mongo: Mongo },
  tx: Transaction,
  scope: VaultScope,
  tier: SourceTier,
): Promise<void> {
  // The lock makes memories stored at this moment join the debt after this transaction.
  const { epoch } = await lockVault(tx, scope.vault)
  if (epoch === scope.epoch && !(await hasUnconsolidated(mongo, scope, tier))) {
    await clearDebt(tx, scope.vault, tier)
  }
}

async function selectOldest(
  { mongo }: { mongo: Mongo },
  scope: VaultScope,
  selection: {
    tier: SourceTier
    space: string
    maxTokens: number | undefined
    excludedIds: ReadonlySet<string>
  },
): Promise<UnconsolidatedMemory[]> {
  const { tier, space, maxTokens, excludedIds } = selection
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

/** The totals of a batch so far. */
export type BatchTotals = { count: number; tokens: number; importance: number }

const tokensMin = 1_000
const tokensMax = 200_000

/** Batches of reflections are small, since their texts are dense. */
const tier2SoftTokensMax = 10_000

/** Every reflection stores the ids of all its sources: 10,000 of them take 0.5 MB per reflection. */
const memoriesMax = 10_000

/**
 * Returns whether a batch takes the next memory; they come oldest first, and the first is always taken. With a budget
 * (that of tier 1 is `thresholdTokens` by default; clamped to 1,000 to 200,000) the memory that would exceed it is left.
 * Tier 2 without one takes reflections until their importance reaches 150 or their tokens 10,000, with the one that reaches it.
 */
export function batchRule(
  tier: SourceTier,
  maxTokens?: number,
): (taken: BatchTotals, next: { tokens: number }) => boolean {
  if (tier === 2 && maxTokens === undefined) {
    return ({ count, importance, tokens }) =>
      count < memoriesMax && importance < thresholdImportance && tokens < tier2SoftTokensMax
  }
  const budget = Math.min(tokensMax, Math.max(tokensMin, maxTokens ?? thresholdTokens))
  return ({ count, tokens }, next) =>
    count === 0 || (count < memoriesMax && tokens + next.tokens <= budget)
}
