import type { CommitAnswer } from '#api/contract/types.ts'
import { reflect, type ReflectionOutput } from '#scripts/consolidate/reflect.ts'
import type { Batch, CheckoutOptions, ConsolidationClient } from '#scripts/consolidate/client.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { ChatModel } from '#shared/models/openai-chat.ts'

export type ConsolidationPlan = {
  tiers: readonly (1 | 2)[]
  /** Batches in all; without end where undefined. */
  batchesMax: number | undefined
  /** Ask the model, commit nothing. */
  dryRun: boolean
  checkout: CheckoutOptions
}

/** One batch, and what became of it. */
export type BatchResult = {
  batch: Batch
  output: ReflectionOutput
  /** Null in a dry run. */
  commitAnswer: CommitAnswer | null
  ms: number
}

/** Hears of each step as it happens. */
export type ConsolidationListener = {
  onCheckout?(batch: Batch): void
  onBatchDone?(done: BatchResult): void
  /** The batch was no longer lent when it was to be committed. */
  onLeaseExpired?(batch: Batch): void
  /** Nothing is left in a tier. */
  onTierDone?(tier: 1 | 2): void
}

/** A lease that runs out again and again means a model that is too slow for its batches. */
const leaseExpiriesMax = 2

/**
 * Consolidates a vault: check out, have the model reflect, commit, until nothing is left. A batch that ran
 * out meanwhile is checked out anew. Whatever interrupts it, what was committed is committed and the
 * batch in hand comes free by itself.
 *
 * @throws Refusal what `reflect` and the vault refuse; `conflict` when the model is too slow for the lease.
 */
export async function consolidate(
  client: ConsolidationClient,
  model: ChatModel,
  plan: ConsolidationPlan,
  { listener, signal }: { listener: ConsolidationListener; signal: AbortSignal },
): Promise<BatchResult[]> {
  const results: BatchResult[] = []
  for (const tier of plan.tiers) {
    let leaseExpiries = 0
    for (;;) {
      if (results.length === plan.batchesMax) return results
      const begun = performance.now()
      const batch = await client.checkOut(tier, plan.checkout)
      if (!batch) {
        listener.onTierDone?.(tier)
        break
      }
      listener.onCheckout?.(batch)
      const output = await reflect(model, batch, signal)
      const commitAnswer = plan.dryRun ? null : await client.commit(batch.batch_id, output.entries)
      if (!commitAnswer && !plan.dryRun) {
        listener.onLeaseExpired?.(batch)
        if (++leaseExpiries > leaseExpiriesMax) throw modelTooSlowRefusal(model)
        continue
      }
      leaseExpiries = 0
      const result = { batch, output, commitAnswer, ms: performance.now() - begun }
      results.push(result)
      listener.onBatchDone?.(result)
      // Without a commit the next checkout of this tier would only lend more.
      if (plan.dryRun && plan.batchesMax === undefined) break
    }
  }
  return results
}

const modelTooSlowRefusal = ({ model }: ChatModel): Refusal =>
  new Refusal(
    'conflict',
    `${model} took longer than the 15 minutes a batch is lent, ${leaseExpiriesMax + 1} times in a row`,
    'Use smaller batches (--max-tokens) or a faster model',
  )
