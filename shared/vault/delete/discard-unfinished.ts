import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { findStoredStates } from '#shared/vault/bulk/memories.mongo.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import type { PlannedMemory } from '#shared/domain/file-types.ts'
import { unsettledSteps, type UnsettledStep } from '#shared/operations/operation-steps.postgres.ts'

/** Memories that work was to store in a vault. */
type PromisedMemories = { vault: string; ids: readonly string[] }

const endedStates = new Set(['done', 'cancelled'])

/**
 * Deletes what an operation that has not ended has stored and not finalized: nothing has counted it. What a file
 * or a copy has stored stays where its vault sent another one since: that one may have been answered that the
 * memories are there already. Call it before the operation is cancelled, in the transaction that removes its jobs: when that is rolled back,
 * they store it again.
 *
 * @param ingested what its jobs carried
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function discardUnfinished(
  { mongo }: { mongo: Mongo },
  tx: Transaction,
  operation: string,
  ingested: readonly PromisedMemories[],
): Promise<void> {
  const status = await findOperationStatus(tx.query, operation)
  if (!status || endedStates.has(status.state)) return
  const unsettled = await unsettledSteps(tx.query, operation)
  const promised = unsettled.map(step => ({ vault: step.vault, ids: idsOf(operation, step) }))
  for (const { vault, ids } of [...ingested, ...promised]) {
    const states = await findStoredStates(mongo, { vault, epoch: 0 }, ids)
    // Another operation may have stored or replaced the memory of an id.
    const own = [...states].filter(([, state]) => state.operation === operation)
    if (own.length === 0) continue
    await new MemoryStore(mongo).discard(
      { vault },
      own.map(([id]) => id),
    )
    const bySession = Map.groupBy(own, ([, { session }]) => session)
    await changeVault(
      tx,
      vault,
      [...bySession].map(([session, those]) => ({
        session: session || null,
        removed: those.map(([id]) => id),
      })),
    )
  }
}

function idsOf(operation: string, { input, plan }: UnsettledStep): string[] {
  if (input) {
    const { first, ids } = input as { first: number; ids: string[] }
    return ids.map((id, i) => copyIdOf(operation, first + i, id))
  }
  return ((plan ?? []) as PlannedMemory[]).filter(({ as }) => as === 'new').map(({ id }) => id)
}
