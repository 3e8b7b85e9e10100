import type { CommitAnswer } from '#api/contract/types.ts'
import { reflect, type Reflected } from '#scripts/consolidate/reflect.ts'
import type { Batch, CheckoutOptions, Vault } from '#scripts/consolidate/vault.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { ChatModel } from '#shared/models/openai-chat.ts'

export type Plan = {
  tiers: readonly (1 | 2)[]
  /** Batches in all; without end where undefined. */
  batchesMax: number | undefined
  /** Ask the model, commit nothing. */
  dryRun: boolean
  checkout: CheckoutOptions
}

/** One batch, and what became of it. */
export type Done = {
  batch: Batch
  reflected: Reflected
  /** Null in a dry run. */
  committed: CommitAnswer | null
  ms: number
}

/** Hears of each step as it happens. */
export type Listener = {
  lent?(batch: Batch): void
  done?(done: Done): void
  /** The batch was no longer lent when it was to be committed. */
  late?(batch: Batch): void
  /** Nothing is left in a tier. */
  finished?(tier: 1 | 2): void
}

/** A lease that runs out again and again means a model that is too slow for its batches. */
const lateMax = 2

/**
 * Consolidates a vault: check out, have the model reflect, commit, until nothing is left. A batch that ran
 * out meanwhile is checked out anew. Whatever interrupts it, what was committed is committed and the
 * batch in hand comes free by itself.
 *
 * @throws Refusal what `reflect` and the vault refuse; `conflict` when the model is too slow for the lease.
 */
export async function consolidate(
  vault: Vault,
  model: ChatModel,
  plan: Plan,
  { listener, signal }: { listener: Listener; signal: AbortSignal },
): Promise<Done[]> {
  const all: Done[] = []
  for (const tier of plan.tiers) {
    let late = 0
    for (;;) {
      if (all.length === plan.batchesMax) return all
      const begun = performance.now()
      const batch = await vault.checkOut(tier, plan.checkout)
      if (!batch) {
        listener.finished?.(tier)
        break
      }
      listener.lent?.(batch)
      const reflected = await reflect(model, batch, signal)
      const committed = plan.dryRun ? null : await vault.commit(batch.batch_id, reflected.entries)
      if (!committed && !plan.dryRun) {
        listener.late?.(batch)
        if (++late > lateMax) throw tooSlow(model)
        continue
      }
      late = 0
      const done = { batch, reflected, committed, ms: performance.now() - begun }
      all.push(done)
      listener.done?.(done)
      // Without a commit the next checkout of this tier would only lend more.
      if (plan.dryRun && plan.batchesMax === undefined) break
    }
  }
  return all
}

const tooSlow = ({ model }: ChatModel): Refusal =>
  new Refusal(
    'conflict',
    `${model} took longer than the 15 minutes a batch is lent, ${lateMax + 1} times in a row`,
    'Use smaller batches (--max-tokens) or a faster model',
  )
