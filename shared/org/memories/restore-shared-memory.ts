import { refusal } from '#shared/core/refusal.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  mutateSharedMemory,
  noSuchSharedMemory,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import {
  listMemoryRevisions,
  type MemoryRevision,
  listAudit,
  type AuditEvent,
} from '#shared/org/memories/audit.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/**
 * Lists the states of a shared memory before and after each change of the last 30 days, newest first.
 *
 * @throws Refusal `missing` when the organization had no such memory in that time.
 */
export async function readHistory(
  { postgres }: Pick<SharedMemoryBackend, 'postgres'>,
  { org }: Pick<OrgVault, 'org'>,
  id: string,
): Promise<MemoryRevision[]> {
  const revisions = await listMemoryRevisions(postgres.query, org, id)
  if (revisions.length > 0) return revisions
  throw noSuchSharedMemory()
}

/**
 * Restores a shared memory to its state before one of its changes; a removed one gets its id again. The audit
 * records `create`, `update` or `retag`.
 *
 * @param event any event of that change; of the latest one without it
 * @throws Refusal `missing` when there is no such memory or event in the last 30 days; `conflict` when there was
 *   nothing before it; otherwise as `mutateSharedMemory`.
 */
export async function restoreSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id, event }: ChangeOrigin & { id: string; event: string | undefined },
): Promise<SharedMemory> {
  const restored = await mutateSharedMemory(
    backend,
    orgVault,
    { operation, actor, id, kind: 'restore' },
    async () => {
      const revisions = await readHistory(backend, orgVault, id)
      const revision =
        event === undefined
          ? revisions[0]
          : revisions.find(({ events }) => events.some(one => one.id === event.toLowerCase()))
      if (!revision) throw refusal('missing', 'noSuchMemoryEvent')
      // Words that an admin takes back are words that an admin wants.
      if (revision.before) return { ...revision.before, byHand: true }
      throw refusal('conflict', 'nothingBefore')
    },
  )
  // Repeated under the same operation, after the restored memory was removed again.
  if (!restored) throw noSuchSharedMemory()
  return restored
}

/**
 * Lists the audit of one shared memory, newest first, also after its removal.
 *
 * @throws Refusal `missing` when the organization never had such a memory.
 */
export async function readMemoryAudit(
  { postgres }: { postgres: Postgres },
  { org }: Pick<OrgVault, 'org'>,
  id: string,
): Promise<AuditEvent[]> {
  const events = await listAudit(postgres.query, org, { memory: id })
  if (events.length > 0) return events
  throw noSuchSharedMemory()
}
