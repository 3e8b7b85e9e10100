import type { Query } from '#shared/storage/postgres/connect.ts'
import {
  historyDays,
  type AuditAction,
  type SharedWrite,
  type WriteKind,
} from '#shared/org/memories/shared-writes.postgres.ts'

/** One change of a shared memory that was carried out. */
export type AuditEvent = {
  id: string
  action: AuditAction
  /** An admin's email, or the member's name in the organization. */
  actor: string
  memory: string
  /** The kind of change; null where its history was deleted. */
  kind: WriteKind | null
  /** Epoch milliseconds. */
  createdAt: number
}

/** Events that are listed without a limit. */
const eventsMax = 10_000

/** Lists audit events of an organization, newest first. */
export async function listAudit(
  query: Query,
  org: string,
  filter: {
    memory?: string
    actor?: string | undefined
    action?: AuditAction | undefined
    /** Epoch milliseconds, inclusive. */
    since?: number | undefined
    limit?: number
  },
): Promise<AuditEvent[]> {
  const { memory, actor, action, since, limit = eventsMax } = filter
  const { rows } = await query<AuditEvent>(
    `select e.id, e.action, e.actor, e.memory, w.kind,
            floor(extract(epoch from e.created_at) * 1000)::float8 as "createdAt"
     from audit_events e left join shared_writes w
       on w.id = e.write and (w.before is not null or w.after is not null)
     where e.org = $1 and ${memory === undefined ? '$6::uuid is null' : 'e.memory = $6'}
       and ($2::text is null or e.actor = $2) and ($3::text is null or e.action = $3)
       and ($4::float8 is null or e.created_at >= to_timestamp($4 / 1000))
     order by e.created_at desc, e.id desc limit $5`,
    [org, actor ?? null, action ?? null, since ?? null, limit, memory ?? null],
    memory === undefined ? 'audit.list' : 'audit.of',
  )
  return rows
}

/** A change that can be read and undone. */
export type MemoryRevision = Pick<
  SharedWrite,
  'id' | 'kind' | 'actor' | 'before' | 'after' | 'createdAt'
> & { events: { id: string; action: AuditAction }[] }

/** Lists the changes of one memory in the last 30 days, newest first. */
export async function listMemoryRevisions(
  query: Query,
  org: string,
  memory: string,
): Promise<MemoryRevision[]> {
  const { rows } = await query<MemoryRevision>(
    `select w.id, w.kind, w.actor, w.before, w.after,
            json_agg(json_build_object('id', e.id, 'action', e.action) order by e.action) as events,
            floor(extract(epoch from max(e.created_at)) * 1000)::float8 as "createdAt"
     from shared_writes w join audit_events e on e.write = w.id
     where w.org = $1 and w.memory = $2 and w.state = 'done'
       and (w.before is not null or w.after is not null)
       and e.created_at > now() - make_interval(days => $3)
     group by w.id order by max(e.created_at) desc, w.id desc limit 500`,
    [org, memory, historyDays],
    'audit.revisions',
  )
  return rows
}
