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
 * Everything that happened to one shared memory, newest first, also after it was removed.
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
 * Looks after changes that were written down half a minute ago and not settled, since whoever made them
 * has died or was cut off: those that came about are told now, others are looked at again later, and
 * after a day no more.
 *
 * @returns how many were settled.
 */
export async function finalizeStrandedWrites(backend: Stores & { queue: Queue }): Promise<number> {
  const due = await dueSharedWrites(backend.postgres.query, dueMax)
  const open: string[] = []
  let settled = 0
  for (const write of due) {
    const state = await findSharedMemoryState(backend.mongo, write, write.memory)
    if (state?.marks.includes(write.id)) {
      await finalizeWrites(backend, write, [write])
      settled++
    } else open.push(write.id)
  }
  if (open.length > 0) await postponeSharedWrites(backend.postgres.query, open)
  return settled
}
