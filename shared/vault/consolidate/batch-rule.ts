import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'
import type { SourceTier } from '#shared/domain/lease.ts'

/** The totals of a batch so far. */
export type BatchTotals = { count: number; tokens: number; importance: number }

/** Whether the next memory, by time, still belongs to the batch; the first always does. */
export type BatchRule = (taken: BatchTotals, next: { tokens: number }) => boolean

const tokensMin = 1_000
const tokensMax = 200_000

/** Batches of reflections are small, since their texts are dense. */
const tier2SoftTokensMax = 10_000

/** Every reflection stores the ids of all its sources: 10,000 of them take 0.5 MB per reflection. */
const memoriesMax = 10_000

/**
 * The rule that fills a batch. With a token budget, clamped to 1,000 to 200,000, a memory that would exceed it
 * is left for the next batch; one that exceeds it alone is a batch by itself, since it would block the tier
 * otherwise. Tier 2 without a budget takes reflections until their importance reaches 150 or their tokens
 * 10,000, including the one that reaches it.
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
