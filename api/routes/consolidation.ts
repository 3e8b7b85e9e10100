import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireRetrievePermission, requireStorePermission } from '#shared/access/caller.ts'
import {
  checkOut,
  findUnconsolidatedInOtherSpace,
  type Batch,
  type UnconsolidatedInOtherSpace,
} from '#shared/vault/consolidate/checkout.ts'
import { presentDebt } from '#api/present/debt.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { commitBatch } from '#shared/vault/consolidate/commit.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'
import { recordRead } from '#shared/billing/meter.ts'
import {
  inspectMemory,
  type MemoryInspection,
  type MemoryLineage,
} from '#shared/vault/read/lists/inspect.mongo.ts'
import type {
  CheckedOutBatch,
  NothingToConsolidate,
  ReflectionContract,
} from '#api/contract/generated/types.ts'
import {
  reflectionContract,
  textMax,
  tierDefinitions,
} from '#shared/vault/consolidate/output-contract.ts'
import { presentSpan, presentExpiry } from '#api/present/memory.ts'
import { tierAbove, type SourceTier, type TargetTier } from '#shared/domain/lease.ts'
import type { Memory } from '#shared/domain/memory.ts'

/** The endpoints of `contract/consolidation.md`. */
export function consolidation(router: Router, backend: ApiBackend): void {
  // Checks out a batch of the oldest memories that no reflection covers.
  endpoint(router, backend, {
    route: 'POST /v1/memory/consolidate/checkout',
    auth: memoryKey(requireRetrievePermission, requireStorePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const criteria = {
        tier: body.tier,
        embeddings: embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
      }
      const batch = await checkOut(backend, caller, {
        ...criteria,
        batch: claim.operation,
        maxTokens: body.max_tokens,
        session: resolveSession(ctx, body.session_id, query.session_id),
      })
      ctx.body = batch
        ? presentBatch(batch)
        : presentEmptyCheckout(
            body.tier,
            await findUnconsolidatedInOtherSpace(backend, caller, criteria),
          )
    },
  })

  // Stores the reflections on a batch; repeated, it answers with what was created the first time.
  endpoint(router, backend, {
    route: 'POST /v1/memory/consolidate/commit',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body, claim }, ctx) {
      const { batch_id: batch, entries } = body

      const committed = await commitBatch(backend, caller, {
        operation: claim.operation,
        batch,
        entries,
      })
      // The debt has changed since the key was read.
      const row = (await findKey(backend.postgres.query, caller.keyHash)) ?? caller.keyRow

      ctx.body = {
        // As it was issued, whichever case a client writes UUIDs in.
        batch_id: batch.toLowerCase(),
        committed: true,
        already_committed: committed.alreadyCommitted,
        tier: committed.tier,
        created: committed.created,
        sources_consolidated: committed.sources,
        reflection: presentDebt(reflectionDebt(row)),
      }
    },
  })

  // Lists the sources of a reflection, and the reflections that cover a memory.
  endpoint(router, backend, {
    route: 'POST /v1/memory/inspect',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body }, ctx) {
      const { memory_id: id } = body

      const inspected = await inspectMemory(backend, caller, id)
      const tokens = inspected.sources.reduce((sum, source) => sum + source.tokens, 0)
      recordRead(backend, caller, { kind: 'inspect', tokens, session: null })

      ctx.body = presentInspection(inspected)
    },
  })
}

/** A batch that was checked out. */
function presentBatch(batch: Batch): CheckedOutBatch {
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
const presentEmptyCheckout = (
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

/** A memory with the tiers below and above it. */
const presentInspection = ({ memory, sources, ...inspection }: MemoryInspection) => ({
  memory_id: memory.id,
  tier: memory.tier,
  batch_id: memory.batch,
  covers: memory.covers && presentSpan(memory.covers),
  sources: sources.map(presentSource),
  sources_total: inspection.sourcesTotal,
  sources_deleted: inspection.sourcesDeleted,
  truncated: inspection.sourcesTotal - inspection.sourcesDeleted > sources.length,
  consolidated_into: inspection.consolidatedInto.map(presentCoveringReflection),
  ...presentExpiry(memory),
})

const presentSource = ({ id, tier, text, role, importance, at }: Memory) => ({
  id,
  tier,
  content: text,
  role,
  importance: importance ?? null,
  date: new Date(at).toISOString(),
})

const presentCoveringReflection = ({ id, tier, text, importance, at, covers }: MemoryLineage) => ({
  id,
  tier,
  content: text,
  importance,
  date: new Date(at).toISOString(),
  covers: presentSpan(covers ?? { from: at, to: at }),
})
