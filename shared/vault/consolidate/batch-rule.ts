import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'
import type { SourceTier } from '#shared/domain/lease.ts'

/** What a batch holds so far. */
export type BatchTotals = { count: number; tokens: number; importance: number }

/** Whether the next memory, in the order of time, still belongs to a batch; the first always does. */
export type BatchRule = (taken: BatchTotals, next: { tokens: number }) => boolean

const tokensMin = 1_000
const tokensMax = 200_000

/** High-level batches are small: their texts are dense already. */
const tier2SoftTokensMax = 10_000

/**
 * Short turns make many memories, and every reflection keeps the ids of all its sources: 10,000 of them
 * are 0.5 MB per reflection.
 */
const memoriesMax = 10_000

/**
 * How a batch is filled. With a budget of tokens, brought between 1,000 and 200,000, a memory that would
 * exceed it is left for the next batch; one that exceeds it by itself is a batch of its own, or it would
 * stand in the way for good. Tier 2 without a budget takes whole reflections until they weigh 150 or
 * reach 10,000 tokens, the last one included.
 */
export function batchRule(tier: SourceTier, maxTokens?: number): BatchRule {
  if (tier === 2 && maxTokens === undefined) {
    return ({ count, importance, tokens }) =>
      count < memoriesMax && importance < thresholdImportance && tokens < tier2SoftTokensMax
  }
  const budget = Math.min(tokensMax, Math.max(tokensMin, maxTokens ?? thresholdTokens))
  return ({ count, tokens }, next) =>
    count === 0 || (count < memoriesMax && tokens + next.tokens <= budget)
}
