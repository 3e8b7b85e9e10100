import { lowestIdAt } from '#shared/core/ids.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { CallTrace } from '#shared/vault/read/traces/call-trace.ts'

/** A trace to store. */
export type NewCallTrace = {
  /** The operation of the call, a UUIDv7. */
  id: string
  vault: string
  /** Of the vault when the call was authenticated: after a clearing the trace is not stored. */
  epoch: number
  session: string | null
  /** Days that it is kept. */
  days: number
  trace: CallTrace
}

export type StoredCallTrace = {
  id: string
  session: string | null
  createdAt: Date
  expiresAt: Date
  trace: CallTrace
}

/** How the vault of a reader may be read: by its current epoch, and no more days back than the policy says. */
export type TraceScope = { vault: string; epoch: number; days: number }

/** Inserts the rows of `$2`, in a statement that does more. */
export const insertTracesSql = `
  insert into call_traces (id, vault, epoch, session, session_epoch, expires_at, trace)
  select i.id, i.vault, i.epoch, i.session, coalesce(s.epoch, 0), now() + make_interval(days => i.days),
         i.trace
  from jsonb_to_recordset($2::jsonb) as i(
    id uuid, vault uuid, epoch integer, session text, days integer, trace jsonb)
  join vaults v on v.id = i.vault and v.epoch = i.epoch
  left join sessions s on s.vault = i.vault and s.session = i.session
  order by i.id
  on conflict (id) do update set trace = excluded.trace where call_traces.vault = excluded.vault`

const readableSql = `t.vault = $1 and t.epoch = $2 and t.expires_at > now()
  and t.created_at > now() - make_interval(days => $3)
  and t.session_epoch = coalesce(
    (select s.epoch from sessions s where s.vault = t.vault and s.session = t.session), 0)`

const columns = `t.id, t.session, t.created_at as "createdAt",
  least(t.expires_at, t.created_at + make_interval(days => $3)) as "expiresAt", t.trace`

/** A trace of a vault; undefined when there is none, or it has ended. */
export async function findCallTrace(
  query: Query,
  { vault, epoch, days }: TraceScope,
  id: string,
): Promise<StoredCallTrace | undefined> {
  const { rows } = await query<StoredCallTrace>(
    `select ${columns} from call_traces t where ${readableSql} and t.id = $4`,
    [vault, epoch, days, id],
    'call-traces.find',
  )
  return rows[0]
}

/** Traces of a vault, newest first. @param before the id of the last one of the page before */
export async function listCallTraces(
  query: Query,
  { vault, epoch, days }: TraceScope,
  { before, limit }: { before: string | undefined; limit: number },
): Promise<StoredCallTrace[]> {
  const { rows } = await query<StoredCallTrace>(
    `select ${columns} from call_traces t
     where ${readableSql} and ($4::uuid is null or t.id < $4)
     order by t.id desc limit $5`,
    [vault, epoch, days, before ?? null, limit],
    'call-traces.list',
  )
  return rows
}

/** A memory that model calls were given. */
export type RecalledMemory = {
  id: string
  /** Turns of the user that it was recalled for. */
  turns: number
  lastAt: Date
  /** The session and the embedding model of the last of them. */
  session: string | null
  embeddings: string
}

/** Traces that are counted at most, the latest. */
const countedTracesMax = 1_000

/**
 * The memories that were recalled most since a moment. A block that later calls still have in their prompt
 * counts once.
 */
export async function countRecalledMemories(
  query: Query,
  { vault, epoch, days }: TraceScope,
  { since, limit }: { since: number; limit: number },
): Promise<RecalledMemory[]> {
  const { rows } = await query<RecalledMemory>(
    `select m.id::uuid as id, count(*)::integer as turns, max(c.created_at) as "lastAt",
            (array_agg(c.session order by c.id desc))[1] as session,
            (array_agg(c.trace->>'embeddings' order by c.id desc))[1] as embeddings
     from (select t.id, t.session, t.created_at, t.trace from call_traces t
           where ${readableSql} and t.id >= $4 and t.created_at >= $5
           order by t.id desc limit $6) c,
       jsonb_array_elements(c.trace->'blocks') b, jsonb_array_elements_text(b->'ids') m(id)
     where b->'ranking' <> '[]'
     group by m.id order by turns desc, "lastAt" desc, m.id limit $7`,
    [vault, epoch, days, lowestIdAt(since - callMaxMs), new Date(since), countedTracesMax, limit],
    'call-traces.count-memories',
  )
  return rows
}

/** A trace is written at the end of its call, its id at the beginning. */
const callMaxMs = 3_600_000

/** Deletes the traces of a cleared range. */
export async function dropClearedTraces(
  query: Query,
  { vault, session, upTo, vaultEpoch }: ClearedRange,
): Promise<void> {
  await query(
    `delete from call_traces
     where vault = $1 and case when $2::text is null then epoch <= $3
                               else session = $2 and session_epoch <= $3 and epoch <= $4 end`,
    [vault, session, upTo, vaultEpoch],
    'call-traces.clear',
  )
}

const dropMax = 10_000

/** Deletes traces whose days are over, some at a time. @returns how many. */
export async function dropExpiredTraces(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from call_traces where ctid = any(array(
       select ctid from call_traces where expires_at <= now() order by expires_at limit $1))`,
    [dropMax],
    'call-traces.expire',
  )
  return rowCount
}

/** Gives the traces of one account whose policy was shortened the end that it has now. @returns how many. */
export async function shortenTraces(query: Query): Promise<number> {
  const { rows } = await query<{ id: string; at: string; end: number }>(
    `select id, traces_shortened_at::text as at,
            case when traces = 'off' then 0 else trace_days end as end
     from accounts where traces_shortened_at is not null order by traces_shortened_at limit 1`,
    [],
    'call-traces.shortened-account',
  )
  const account = rows[0]
  if (!account) return 0
  const { rowCount } = await query(
    `update call_traces set expires_at = created_at + make_interval(days => $2)
     where ctid = any(array(
       select t.ctid from call_traces t join vaults v on v.id = t.vault
       where v.account = $1 and t.expires_at > t.created_at + make_interval(days => $2) limit $3))`,
    [account.id, account.end, dropMax],
    'call-traces.shorten',
  )
  if (rowCount < dropMax) {
    await query(
      `update accounts set traces_shortened_at = null
       where id = $1 and traces_shortened_at = $2::timestamptz`,
      [account.id, account.at],
      'call-traces.shortened',
    )
  }
  return rowCount
}
