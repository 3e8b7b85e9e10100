import type {
  CheckedOutBatch,
  NothingToConsolidate,
  ReflectionContract,
} from '#api/contract/generated/types.ts'
import type { Batch, UnconsolidatedInOtherSpace } from '#shared/vault/consolidate/checkout.ts'
import {
  reflectionContract,
  textMax,
  tierDefinitions,
} from '#shared/vault/consolidate/output-contract.ts'
import { presentSpan } from '#api/present/span.ts'
import { tierAbove, type SourceTier, type TargetTier } from '#shared/domain/lease.ts'

/** A batch that was checked out. */
export function presentBatch(batch: Batch): CheckedOutBatch {
  const target = tierAbove(batch.tier)
  return {
    batch_id: batch.batch,
    tier: batch.tier,
    count: batch.memories.length,
    est_tokens: batch.tokens,
    covers: presentSpan(batch.covers),
    lease_expires_at: batch.expiresAt.toISOString(),
    memories: batch.memories.map(({ text, at }) => ({ text, date: new Date(at).toISOString() })),
    source_ids: batch.memories.map(({ id }) => id),
    reflection_contract: presentContract(target),
    tier_definitions: { target_tier: target, instruction: tierDefinitions[target] },
  }
}

/** The end of a consolidation loop, or why another model would go on with it. */
export const presentEmptyCheckout = (
  tier: SourceTier,
  waitingSpace: UnconsolidatedInOtherSpace | null,
): NothingToConsolidate => ({
  batch_id: null,
  tier,
  count: 0,
  message: waitingSpace
    ? `Nothing to consolidate in the space of ${waitingSpace.requestedModel}: what waits is in that of ` +
      `${waitingSpace.model}. Check out with "embeddings": "${waitingSpace.model}", or bring all of the ` +
      `vault into one space with POST /v1/memory/reembed`
    : tier === 1
      ? 'Nothing to consolidate: every raw memory is covered by a reflection or lent out'
      : 'Nothing to consolidate: every reflection is covered by a high-level one or lent out',
})

function presentContract(target: TargetTier): ReflectionContract {
  const contract = reflectionContract(target)
  return {
    version: contract.version,
    target_tier: target,
    instructions: contract.instructions,
    entry_schema: {
      text: {
        type: 'string',
        minLength: 1,
        maxLength: textMax,
        description: 'Clean standalone prose, without ids or importance numbers inside',
      },
      importance: {
        type: 'integer',
        minimum: 1,
        maximum: 10,
        description: 'How much it matters that this is still known: 1 hardly, 10 defining',
      },
    },
    min_entries: contract.entriesMin,
    max_entries: contract.entriesMax,
    recommended_entries: contract.entriesRecommended,
  }
}
