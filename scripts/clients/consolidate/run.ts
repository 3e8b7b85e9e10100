import type { CommitAnswer } from '#api/contract/generated/types.ts'
import { reflect, type ReflectionOutput } from '#scripts/clients/consolidate/reflect.ts'
import type {
  Batch,
  CheckoutOptions,
  ConsolidationClient,
} from '#scripts/clients/consolidate/client.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { ChatModel } from '#scripts/clients/consolidate/openai-chat.ts'

export type ConsolidationPlan = {
  tiers: readonly (1 | 2)[]
  /** Maximum number of batches; undefined for no limit. */
  batchesMax: number | undefined
  /** Call the model, commit nothing. */
  dryRun: boolean
  checkout: CheckoutOptions
}

/** One batch and its outcome. */
export type BatchResult = {
  batch: Batch
  output: ReflectionOutput
  /** Null in a dry run. */
  commitAnswer: CommitAnswer | null
  ms: number
}

/** Called after each step. */
export type ConsolidationListener = {
  onCheckout?(batch: Batch): void
  onBatchDone?(result: BatchResult): void
  /** The lease of the batch expired before the commit. */
  onLeaseExpired?(batch: Batch): void
  /** No batch is left in a tier. */
  onTierDone?(tier: 1 | 2): void
}

/** More expired leases in a row mean that the model is too slow for the batch size. */
const leaseExpiriesMax = 2

/**
 * Consolidates a vault: checks out a batch, has the model reflect, commits, until no batch is left. A
 * batch whose lease expired is checked out again. It may be interrupted at any time: committed batches
 * remain, and the lease of the current batch expires.
 *
 * @throws Refusal of `reflect` or of the service; `conflict` when the model is too slow for the lease.
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
      const startedAt = performance.now()
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
      const result = { batch, output, commitAnswer, ms: performance.now() - startedAt }
      results.push(result)
      listener.onBatchDone?.(result)
      // Without a commit the next checkout of this tier would lease further batches.
      if (plan.dryRun && plan.batchesMax === undefined) break
    }
  }
  return results
}

const modelTooSlowRefusal = ({ model }: ChatModel): Refusal =>
  new Refusal(
    'conflict',
    `${model} took longer than the lease of a batch (15 minutes), ${leaseExpiriesMax + 1} times in a row`,
    'Use smaller batches (--max-tokens) or a faster model',
  )
