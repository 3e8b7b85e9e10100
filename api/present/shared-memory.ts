import type {
  AuditEvent as PresentedEvent,
  SharedMemory as PresentedMemory,
  SharedRevision,
  SharedSnapshot,
} from '#api/contract/types.ts'
import type { SharedMemory } from '#shared/mongo/shared-memories.ts'
import { sensitivityOf } from '#shared/org/permitted.ts'
import type { AuditEvent, Revision } from '#shared/postgres/audit.ts'
import type { Query } from '#shared/postgres/connect.ts'
import { listRoles } from '#shared/postgres/roles.ts'
import type { Snapshot } from '#shared/postgres/shared-writes.ts'

/** Allowed tags of each role: what says how sensitive a memory is. */
export type Bands = { org: string; roles: readonly (readonly string[])[] }

export const bandsOf = async (query: Query, org: string): Promise<Bands> => ({
  org,
  roles: (await listRoles(query, org)).map(({ allowedTags }) => allowedTags),
})

export const presentShared = (memory: SharedMemory, { org, roles }: Bands): PresentedMemory => ({
  mem_id: memory.id,
  org_id: org,
  text: memory.text,
  tags: [...memory.tags],
  confidence: memory.confidence,
  author: memory.author,
  reviewed: memory.reviewed,
  sensitivity: sensitivityOf(memory.tags, roles),
  acquired_at: memory.acquiredAt,
  updated_at: memory.updatedAt,
})

export const presentEvent = (event: AuditEvent): PresentedEvent => ({
  event_id: event.id,
  action: event.action,
  actor: event.actor,
  mem_id: event.memory,
  created_at: event.createdAt,
})

export const presentRevision = ({
  kind,
  actor,
  events,
  before,
  after,
  createdAt,
}: Revision): SharedRevision => ({
  kind,
  actor,
  events: events.map(({ id, action }) => ({ event_id: id, action })),
  before: before && presentSnapshot(before),
  after: after && presentSnapshot(after),
  created_at: createdAt,
})

const presentSnapshot = ({ text, tags, confidence, reviewed }: Snapshot): SharedSnapshot => ({
  text,
  tags: [...tags],
  confidence,
  reviewed,
})
