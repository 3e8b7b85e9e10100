import { mintId } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { missingOrganization } from '#shared/org/orgs.postgres.ts'

export type AuditAction = 'create' | 'update' | 'delete' | 'retag'

export type WriteKind = 'add' | 'edit' | 'delete' | 'review' | 'undo' | 'restore'

/** What a shared memory said before a write, or after it. Times in epoch milliseconds. */
export type MemorySnapshot = {
  text: string
  tags: readonly string[]
  confidence: number
  author: string
  reviewed: boolean
  /** An admin has changed its words. */
  byHand?: boolean
  acquiredAt: number
  tokens: number
  /** After an approval: the memory that went with it. */
  replaced?: string
}

/** A change that somebody set out to make, and whether it came about. */
export type SharedWrite = {
  /** Also the mark that the document bears once it has come about. */
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
 * Writes down what is about to be done. One that was written down before and did not come about is
 * written anew, since it starts from what stands there now.
 *
 * @returns the ids of those that have been done already.
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

/** Rethrows that a row names an organization that has been removed meanwhile, as a Refusal. */
function refuseWhenOrgMissing(error: unknown): never {
  throw (error as { code?: string }).code === '23503' ? missingOrganization() : error
}

/** The writes of these ids, as far as there are any. */
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

/** What is pending of a memory. */
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

/** What has been pending for half a minute and is to be looked after now, the longest waiting first. */
export async function dueSharedWrites(query: Query, max: number): Promise<SharedWrite[]> {
  const { rows } = await query<SharedWrite>(
    `select ${columns} from shared_writes
     where state = 'pending' and due_at < now() order by due_at limit $1`,
    [max],
    'shared.due',
  )
  return rows
}

/** Looks after these again when they are twice as old; what is a day old will not come about. */
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

/**
 * Marks writes as done, and tells of each change in the audit; of those that are done already nothing
 * is told again.
 *
 * @returns the ids of those that were pending until now.
 */
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

/** Forgets what shared memories said before and after changes of long ago. @returns how many. */
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
