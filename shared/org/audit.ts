import { findSharedMemoryState } from '#shared/org/shared-memories.mongo.ts'
import { noSuchSharedMemory } from '#shared/org/shared-change.ts'
import { finalizeWrites } from '#shared/org/finalize-shared-writes.ts'
import { listMemoryAudit, type AuditEvent } from '#shared/org/audit.postgres.ts'
import { dueSharedWrites, postponeSharedWrites } from '#shared/org/shared-writes.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'

/**
 * The audit of one shared memory, newest first, also after it was removed.
 *
 * @throws Refusal `missing` when the organization never had such a memory.
 */
export async function readMemoryAudit(
  { postgres }: { postgres: Postgres },
  { org }: Pick<OrgVault, 'org'>,
  id: string,
): Promise<AuditEvent[]> {
  const events = await listMemoryAudit(postgres.query, org, id)
  if (events.length > 0) return events
  throw noSuchSharedMemory()
}

const dueMax = 500

/**
 * Finalizes writes whose process ended between recording the intent and finalizing it, 30 seconds ago or
 * earlier: those that were applied are finalized now, the others are checked again later, for a day.
 *
 * @returns how many were finalized.
 */
export async function finalizeStrandedWrites(backend: Stores & { queue: Queue }): Promise<number> {
  const due = await dueSharedWrites(backend.postgres.query, dueMax)
  const open: string[] = []
  let finalized = 0
  for (const write of due) {
    const state = await findSharedMemoryState(backend.mongo, write, write.memory)
    if (state?.marks.includes(write.id)) {
      await finalizeWrites(backend, write, [write])
      finalized++
    } else open.push(write.id)
  }
  if (open.length > 0) await postponeSharedWrites(backend.postgres.query, open)
  return finalized
}
