import type {
  AuditEvent as PresentedEvent,
  NamedMemory,
  SharedMemory as PresentedMemory,
  SharedRevision,
  SharedSnapshot,
} from '#api/contract/generated/types.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { sensitivityOf } from '#shared/domain/visibility.ts'
import type { AuditEvent, MemoryRevision } from '#shared/org/memories/audit.postgres.ts'
import type { MemorySnapshot } from '#shared/org/memories/shared-writes.postgres.ts'
import type { SensitivityRules } from '#shared/org/base/sensitivity-rules.ts'

export const presentSharedMemory = (
  memory: SharedMemory,
  { org, roles }: SensitivityRules,
): PresentedMemory => ({
  mem_id: memory.id,
  org_id: org,
  text: memory.text,
  tags: [...memory.tags],
  confidence: memory.confidence,
  author: memory.author,
  reviewed: memory.reviewed,
  pending: memory.pending ?? false,
  sensitivity: sensitivityOf(memory.tags, roles),
  acquired_at: memory.acquiredAt,
  first_author: memory.origin?.author ?? memory.author,
  first_acquired_at: memory.origin?.acquiredAt ?? memory.acquiredAt,
  contributors: [...(memory.origin?.contributors ?? [memory.author])],
  confirmed_at: memory.confirmedAt ?? null,
  ...(memory.metadata && { metadata: memory.metadata }),
  updated_at: memory.updatedAt,
})

export const presentNamedMemory = ({ id, text, tags, author }: SharedMemory): NamedMemory => ({
  mem_id: id,
  text,
  tags: [...tags],
  author,
})

export const presentAuditEvent = (event: AuditEvent): PresentedEvent => ({
  event_id: event.id,
  action: event.action,
  actor: event.actor,
  mem_id: event.memory,
  kind: event.kind,
  created_at: event.createdAt,
})

export const presentRevision = (revision: MemoryRevision): SharedRevision => ({
  kind: revision.kind,
  actor: revision.actor,
  events: revision.events.map(({ id, action }) => ({ event_id: id, action })),
  before: revision.before && presentSnapshot(revision.before),
  after: revision.after && presentSnapshot(revision.after),
  created_at: revision.createdAt,
})

const presentSnapshot = ({ text, tags, confidence, reviewed }: MemorySnapshot): SharedSnapshot => ({
  text,
  tags: [...tags],
  confidence,
  reviewed,
})
