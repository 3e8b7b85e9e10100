import { findSharedMemoryState } from '#shared/org/memories/shared-memories.mongo.ts'
import { noSuchSharedMemory } from '#shared/org/memories/shared-change.ts'
import { finalizeWrites } from '#shared/org/memories/finalize-shared-writes.ts'
import { listMemoryAudit, type AuditEvent } from '#shared/org/memories/audit.postgres.ts'
import {
  dueSharedWrites,
  postponeFailedWrite,
  postponeSharedWrites,
  type SharedWrite,
} from '#shared/org/memories/shared-writes.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
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
 * earlier: those that were applied are finalized now, the others are checked again later, for a day. One
 * that cannot be finalized is logged and tried again later, until it can; it holds up no other.
 *
 * @returns how many were finalized.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function finalizeStrandedWrites(
  backend: Stores & { queue: Queue; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  const open: string[] = []
  let finalized = 0
  for (const write of await dueSharedWrites(query, dueMax)) {
    try {
      if (await finalizeIfApplied(backend, write)) finalized++
      else open.push(write.id)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'unavailable') throw error
      backend.log.error({ err: error, org: write.org, write: write.id }, 'shared-write.postponed')
      await postponeFailedWrite(query, write.id)
    }
  }
  if (open.length > 0) await postponeSharedWrites(query, open)
  return finalized
}

/** @returns false when its document does not bear its mark. */
async function finalizeIfApplied(
  backend: Stores & { queue: Queue },
  write: SharedWrite,
): Promise<boolean> {
  const state = await findSharedMemoryState(backend.mongo, write, write.memory)
  if (!state?.marks.includes(write.id)) return false
  await finalizeWrites(backend, write, [write])
  return true
}
