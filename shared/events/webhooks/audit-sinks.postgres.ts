import type { Query } from '#shared/storage/postgres/connect.ts'

/** A webhook that takes the audit; address and secrets are sealed. */
export type AuditSink = {
  webhook: string
  account: string
  storedUrl: string
  secret: string
  formerSecret: string | null
}

/** The webhooks that take the audit. Gives a new one a cursor per chain, from the time the webhook was made. */
export async function listAuditSinks(query: Query): Promise<AuditSink[]> {
  const { rows } = await query<AuditSink>(
    `with sinks as (
       select * from webhooks where disabled_at is null and 'audit.event' = any(events)
     ), new_cursor as (
       insert into audit_cursors (webhook, chain, position)
       select s.id, c.chain, greatest(
         (select coalesce(max(position), 0) from account_events where account = c.chain and created_at < s.created_at),
         (select coalesce(max(position), 0) from audit_events where org = c.chain and created_at < s.created_at))
       from sinks s cross join lateral (
         select s.account as chain union all select id from orgs where account = s.account) c
       where not exists (select from audit_cursors k where k.webhook = s.id and k.chain = c.chain)
       on conflict do nothing
     )
     select id as webhook, account, url as "storedUrl", secret,
            case when former_until > now() then former_secret end as "formerSecret" from sinks`,
    [],
    'audit-sinks.open',
  )
  return rows
}

/** An event of a chain; one of an organization is about a shared memory. */
export type ChainedEvent = {
  chain: string
  position: number
  id: string
  action: string
  subject: string
  actor: string
  /** JSON of `[before, after]`, or `[before, after, organization]`. */
  change: string | null
  /** Epoch milliseconds. */
  at: number
  /** In hex. */
  hash: string
}

/** What a webhook is to be told next, each chain in its order. */
export async function nextAuditEvents(
  query: Query,
  webhook: string,
  limit: number,
): Promise<ChainedEvent[]> {
  const after = `position > k.position order by position limit ${limit}`
  const { rows } = await query<ChainedEvent>(
    `select k.chain, e.position, e.id, e.action, e.subject, e.actor, e.change,
            floor(extract(epoch from e.created_at) * 1000)::float8 as at, encode(e.hash, 'hex') as hash
     from audit_cursors k cross join lateral (
       (select position, id, action, subject, actor, change, created_at, hash
        from account_events where account = k.chain and ${after})
       union all
       (select position, id, 'memory.' || action, memory::text, actor, null, created_at, hash
        from audit_events where org = k.chain and ${after})) e
     where k.webhook = $1 order by e.created_at, e.position limit ${limit}`,
    [webhook],
    'audit-sinks.next',
  )
  return rows
}

/** Notes that the receiver took an event, or since when it takes none; the last `where` skips what changes nothing. */
export async function noteAuditAnswer(
  query: Query,
  webhook: string,
  taken: Pick<ChainedEvent, 'chain' | 'position'> | null,
): Promise<void> {
  await query(
    `with moved_cursor as (
       update audit_cursors set position = $3 where webhook = $1 and chain = $2 and position < $3
     )
     update webhooks set failing_since = case when $2::uuid is null then coalesce(failing_since, now()) end
     where id = $1 and (failing_since is null) = ($2::uuid is null)`,
    [webhook, taken?.chain ?? null, taken?.position ?? null],
    'audit-sinks.note',
  )
}
