import { mintId } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { missingOrganization } from '#shared/org/base/orgs.postgres.ts'

export type AuditAction = 'create' | 'update' | 'delete' | 'retag'

export type WriteKind = 'add' | 'edit' | 'delete' | 'review' | 'undo' | 'restore' | 'withdraw'

/** The content of a shared memory before a write, or after it. */
export type MemorySnapshot = Omit<SharedMemory, 'id' | 'updatedAt' | 'version'> & {
  /** After an approval: the memory that it removed. */
  replaced?: string
}

/** An intended change of a shared memory, and whether it was carried out. */
export type SharedWrite = {
  /** Also the mark in the document. */
  id: string
  org: string
  vault: string
  epoch: number
  memory: string
  kind: WriteKind
  actor: string
  actions: readonly AuditAction[]
  before: MemorySnapshot | null
  after: MemorySnapshot | null
  state: 'pending' | 'done'
  /** Epoch milliseconds. */
  createdAt: number
}

export type WriteIntent = Omit<SharedWrite, 'state' | 'createdAt'>

const columns = `id, org, vault, epoch, memory, kind, actor, actions, before, after, state,
  floor(extract(epoch from created_at) * 1000)::float8 as "createdAt"`

/**
 * Records intended writes. Replaces a pending one of the same id, since it starts from the current document.
 *
 * @returns the ids of those that are done already.
 * @throws Refusal `missing` when their organization is gone.
 */
export async function recordWriteIntents(
  query: Query,
  intents: readonly WriteIntent[],
): Promise<Set<string>> {
  const { rows } = await query<{ id: string }>(
    `with intended as (
       insert into shared_writes (id, org, vault, epoch, memory, kind, actor, actions, before, after)
       select id, org, vault, epoch, memory, kind, actor, actions, before, after
       from jsonb_to_recordset($1::jsonb) as item(
         id uuid, org uuid, vault uuid, epoch int, memory uuid, kind text, actor text, actions text[],
         before jsonb, after jsonb)
       on conflict (id) do update
         set epoch = excluded.epoch, actions = excluded.actions, before = excluded.before,
             after = excluded.after, due_at = now() + interval '30 seconds'
         where shared_writes.state = 'pending'
       returning id
     )
     select item.id from jsonb_to_recordset($1::jsonb) as item(id uuid)
     where item.id not in (select id from intended)`,
    [JSON.stringify(intents)],
    'shared.intend',
  ).catch(refuseWhenOrgMissing)
  return new Set(rows.map(({ id }) => id))
}

/** Turns the foreign-key violation of a removed organization into a Refusal. */
function refuseWhenOrgMissing(error: unknown): never {
  throw (error as { code?: string }).code === '23503' ? missingOrganization() : error
}

export async function findSharedWrites(
  query: Query,
  ids: readonly string[],
): Promise<Map<string, SharedWrite>> {
  const { rows } = await query<SharedWrite>(
    `select ${columns} from shared_writes where id = any($1::uuid[])`,
    [ids],
    'shared.find',
  )
  return new Map(rows.map(row => [row.id, row]))
}

/** Lists the pending writes of a memory, oldest first. */
export async function listPendingWrites(
  query: Query,
  { org, memory }: { org: string; memory: string },
): Promise<SharedWrite[]> {
  const { rows } = await query<SharedWrite>(
    `select ${columns} from shared_writes
     where org = $1 and memory = $2 and state = 'pending' order by created_at`,
    [org, memory],
    'shared.pending',
  )
  return rows
}

/** Lists writes that are pending for 30 seconds and due for a check, the longest waiting first. */
export async function dueSharedWrites(query: Query, max: number): Promise<SharedWrite[]> {
  const { rows } = await query<SharedWrite>(
    `select ${columns} from shared_writes
     where state = 'pending' and due_at < now() order by due_at limit $1`,
    [max],
    'shared.due',
  )
  return rows
}

/** Postpones writes until they are twice as old; deletes those that are a day old. */
export async function postponeSharedWrites(query: Query, ids: readonly string[]): Promise<void> {
  await query(
    `with old as (
       delete from shared_writes
       where id = any($1::uuid[]) and state = 'pending' and created_at < now() - interval '1 day'
     )
     update shared_writes set due_at = now() + greatest(now() - created_at, interval '30 seconds')
     where id = any($1::uuid[]) and state = 'pending'
       and created_at >= now() - interval '1 day'`,
    [ids],
    'shared.postpone',
  )
}

/** Postpones a write that may have been applied until it is twice as old, by an hour at most. It is never deleted. */
export async function postponeFailedWrite(query: Query, id: string): Promise<void> {
  await query(
    `update shared_writes
     set due_at = now() + least(greatest(now() - created_at, interval '30 seconds'), interval '1 hour')
     where id = $1 and state = 'pending'`,
    [id],
    'shared.postpone-failed',
  )
}

/** Marks pending writes as done and inserts their audit events. @returns the ids of those that were pending. */
export async function completeSharedWrites(
  { query }: Transaction,
  writes: readonly Pick<SharedWrite, 'id' | 'actions' | 'before' | 'after'>[],
): Promise<Set<string>> {
  const items = writes.map(({ id, actions, before, after }) => {
    const events = actions.map(() => mintId())
    return { id, actions, before, after, events }
  })
  const { rows } = await query<{ id: string }>(
    `with item as (
       select * from jsonb_to_recordset($1::jsonb)
         as item(id uuid, actions text[], before jsonb, after jsonb, events uuid[])
     ), completed as (
       update shared_writes w
       set state = 'done', actions = i.actions, before = i.before, after = i.after
       from item i where w.id = i.id and w.state = 'pending'
       returning w.id, w.org, w.memory, w.actor, w.actions, i.events
     ), told as (
       insert into audit_events (id, org, memory, action, actor, write, created_at)
       select a.event, c.org, c.memory, a.action, c.actor, c.id, clock_timestamp()
       from completed c, unnest(c.actions, c.events) a(action, event)
     )
     select id from completed`,
    [JSON.stringify(items)],
    'shared.complete',
  )
  return new Set(rows.map(({ id }) => id))
}

/** Days for which a change can be undone. */
export const historyDays = 30

/** Deletes done writes after 30 days. @returns how many. */
export async function dropOldSharedWrites(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from shared_writes where id = any(array(
       select id from shared_writes
       where created_at < now() - make_interval(days => $1) and state = 'done' limit 10000))`,
    [historyDays],
    'shared.forget',
  )
  return rowCount
}

/** Bills the storage of shared memories to the owner, under the organization's own key; an id once. */
export async function billSharedMemories(
  { query }: Transaction,
  org: string,
  bills: readonly { id: string; tokens: number }[],
): Promise<void> {
  if (bills.length === 0) return
  await query(
    `with owner as (
       select o.account, o.vault, k.hash from orgs o
       join lateral (select hash from memory_keys
                     where org = o.id and org_user is null order by created_at desc limit 1) k on true
       where o.id = $1
     ), billed as (
       insert into usage_events (id, account, vault, key_hash, kind, memory_tokens)
       select item.id, account, vault, hash, 'org-memory', item.tokens
       from owner, unnest($2::uuid[], $3::int[]) as item(id, tokens)
       on conflict (id) do nothing returning account, memory_tokens
     )
     update accounts a set balance = balance - b.tokens
     from (select account, sum(memory_tokens) as tokens from billed group by account) b
     where a.id = b.account and a.balance is not null`,
    [org, bills.map(({ id }) => id), bills.map(({ tokens }) => tokens)],
    'shared.bill',
  )
}

/** SQL: the writes `w` of the organization `$1` that can be undone. */
const restorable = `w.org = $1 and w.state = 'done' and w.id in (
  select write from audit_events
  where org = $1 and created_at > now() - make_interval(days => ${historyDays}))`

/** Whether a memory can be restored to a state with one of these labels. */
export async function isLabelRestorable(
  query: Query,
  org: string,
  labels: readonly string[],
): Promise<boolean> {
  const { rows } = await query<{ found: boolean }>(
    `select exists (
       select from shared_writes w where ${restorable} and w.before->'tags' ?| $2::text[]
     ) as found`,
    [org, labels],
    'history.labels',
  )
  return rows[0]!.found
}

/** SQL: a snapshot with the label `$2` replaced by `$3`. */
const relabelled = (snapshot: string): string =>
  `case when ${snapshot}->'tags' ? $2 then jsonb_set(${snapshot}, '{tags}', (
     select jsonb_agg(distinct case label when $2 then $3 else label end)
     from jsonb_array_elements_text(${snapshot}->'tags') label))
   else ${snapshot} end`

/** Replaces a label in everything that memories can be restored to. */
export async function relabelHistory(
  { query }: Transaction,
  org: string,
  { from, to }: { from: string; to: string },
): Promise<void> {
  await query(
    `update shared_writes w set before = ${relabelled('w.before')}, after = ${relabelled('w.after')}
     where ${restorable} and (w.before->'tags' ? $2 or w.after->'tags' ? $2)`,
    [org, from, to],
    'history.relabel',
  )
}
