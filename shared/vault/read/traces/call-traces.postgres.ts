import { lowestIdAt } from '#shared/core/ids.ts'
import { activeSql } from '#shared/access/key-row.postgres.ts'
import { accountVaultSql } from '#shared/operations/account-vaults.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { CallOutcome, CallTrace, CallWay } from '#shared/vault/read/traces/call-trace.ts'
import type { KeptQuestion } from '#shared/vault/read/traces/kept-question.ts'

/** A trace to store. */
export type NewCallTrace = {
  /** The operation of a model call, a UUIDv7. */
  id: string
  vault: string
  /** The vault's when the call was authenticated: after a clearing the trace is not stored. */
  epoch: number
  session: string | null
  /** Days that it is kept. */
  days: number
  way: CallWay
  trace: CallTrace
  /** What is known of it by now. */
  outcome?: CallOutcome
  /** The words of a call that stores nothing. */
  question?: KeptQuestion | undefined
}

export type StoredCallTrace = {
  id: string
  vault: string
  /** The vault's. */
  epoch: number
  way: CallWay
  /** The account's own id of the user whose vault it is. */
  user: string | null
  session: string | null
  createdAt: Date
  expiresAt: Date
  trace: CallTrace
  outcome: CallOutcome | null
  /** Whether the reader may see words of this vault. */
  isReadable: boolean
  /** The words of a call that stores nothing; null where the reader may not see them. */
  question: string | null
}

/** What may be read: traces of the reader's vault, as it is now, and no more days back than the policy says. */
export type TraceScope = { vault: string; days: number }

/** For the owner of an account: those of all of its own vaults, or of the vault of one user. */
export type AccountTraceScope = TraceScope & { account: string; user: string | undefined }

/**
 * Inserts traces, in a statement that does more.
 *
 * @param rows the parameter with the rows, as `toTraceRows` makes them
 */
export const insertTracesSql = (rows: `$${number}`): string => `
  insert into call_traces (id, vault, epoch, session, session_epoch, expires_at, way, account, status, model, trace,
                           outcome, question, question_marks)
  select i.id, i.vault, i.epoch, i.session, coalesce(s.epoch, 0), now() + make_interval(days => i.days),
         i.way, v.account, i.trace->>'status', i.trace->>'model', i.trace, i.outcome, i.question, i.marks
  from jsonb_to_recordset(${rows}::jsonb) as i(
    id uuid, vault uuid, epoch integer, session text, days integer, way text, trace jsonb, outcome jsonb,
    question text, marks bytea[])
  join vaults v on v.id = i.vault and v.epoch = i.epoch
  left join sessions s on s.vault = i.vault and s.session = i.session
  order by i.id
  on conflict (id) do update
    set trace = excluded.trace, status = excluded.status, model = excluded.model
    where call_traces.vault = excluded.vault`

/** The parameter of `insertTracesSql`; of one id the last counts. */
export const toTraceRows = (traces: readonly NewCallTrace[]): string =>
  JSON.stringify(
    [...new Map(traces.map(trace => [trace.id, trace])).values()].map(({ question, ...trace }) =>
      question ? { ...trace, question: question.text, marks: question.marks } : trace,
    ),
  )

/** What became of a call whose trace is stored. */
export type EndedCall = {
  id: string
  vault: string
  outcome: CallOutcome
  /** The words of a call whose turn was stored with an earlier call. */
  question?: KeptQuestion | undefined
}

/** Inserts traces, and notes what became of calls whose traces are there. */
export async function saveCallTraces(
  query: Query,
  traces: readonly NewCallTrace[],
  ended: readonly EndedCall[],
): Promise<void> {
  await query(
    `with traced as (${insertTracesSql('$2')})
     update call_traces t set outcome = i.outcome, question = coalesce(i.question, t.question),
                              question_marks = coalesce(i.marks, t.question_marks)
     from jsonb_to_recordset($1::jsonb) as i(id uuid, vault uuid, outcome jsonb, question text, marks bytea[])
     where t.id = i.id and t.vault = i.vault`,
    [
      JSON.stringify(
        ended.map(({ question, ...call }) => ({
          ...call,
          question: question?.text,
          marks: question?.marks,
        })),
      ),
      toTraceRows(traces),
    ],
    'call-traces.save',
  )
}

/** SQL condition: the trace has not ended, and what it is about was not cleared. */
const currentSql = `t.epoch = v.epoch and t.expires_at > now()
  and t.created_at > now() - make_interval(days => $2)
  and t.session_epoch = coalesce(
    (select s.epoch from sessions s where s.vault = t.vault and s.session = t.session), 0)`

/** The words of another vault are shown where X-Memory-User opens it, and nothing in it waits to be purged. */
const columns = `t.id, t.vault, t.epoch, t.way, v.external_id as "user", t.session,
  t.created_at as "createdAt",
  least(t.expires_at, t.created_at + make_interval(days => $2)) as "expiresAt", t.trace, t.outcome,
  opened.by_reader as "isReadable", case when opened.by_reader then t.question end as question`

const tables = `call_traces t join vaults v on v.id = t.vault
  cross join lateral (select t.vault = $1
    or (v.external_id is not null and coalesce(v.next_expiry > now(), true)
        and exists (select from memory_keys k where k.vault = v.id and k.kind = 'vault' and k.rights = 'all'
                                                and ${activeSql})) as by_reader) opened`

/** A trace of a vault; undefined when there is none, or it has ended. */
export async function findCallTrace(
  query: Query,
  { vault, days }: TraceScope,
  id: string,
): Promise<StoredCallTrace | undefined> {
  const { rows } = await query<StoredCallTrace>(
    `select ${columns} from ${tables} where t.vault = $1 and ${currentSql} and t.id = $3`,
    [vault, days, id],
    'call-traces.find',
  )
  return rows[0]
}

/** SQL conditions of the vaults that are read, by the name of the statement. */
const scopes = {
  'call-traces.list': 't.vault = $1',
  'call-traces.list-account': `t.account = $12 and ${accountVaultSql('t.vault')}`,
  'call-traces.list-user': 'v.account = $12 and v.external_id = $13',
} as const

function scopeOf(scope: TraceScope | AccountTraceScope): [keyof typeof scopes, string[]] {
  if (!('account' in scope)) return ['call-traces.list', []]
  const { account, user } = scope
  return user === undefined
    ? ['call-traces.list-account', [account]]
    : ['call-traces.list-user', [account, user]]
}

/** Traces, newest first. @param page `before`: the id of the last one of the page before */
export async function listCallTraces(
  query: Query,
  scope: TraceScope | AccountTraceScope,
  { before, limit }: { before: string | undefined; limit: number },
  filter: {
    way?: CallWay | undefined
    status?: CallTrace['status'] | undefined
    session?: string | undefined
    /** Provider-prefixed. */
    model?: string | undefined
    /** Epoch milliseconds, the end exclusive. */
    since?: number | undefined
    until?: number | undefined
    /** Whether the call was refused, or its model has not answered. */
    failed?: boolean | undefined
  } = {},
): Promise<StoredCallTrace[]> {
  const { way, status, session, model, since, until, failed } = filter
  const [name, parameters] = scopeOf(scope)
  const { rows } = await query<StoredCallTrace>(
    `select ${columns} from ${tables}
     where ${scopes[name]} and ${currentSql}
       and ($3::uuid is null or t.id < $3)
       and ($5::text is null or t.way = $5) and ($6::text is null or t.status = $6)
       and ($7::text is null or t.session = $7) and ($8::text is null or t.model = $8)
       and ($9::timestamptz is null or t.created_at >= $9)
       and ($10::timestamptz is null or t.created_at < $10)
       and ($11::boolean is null or $11 = coalesce(t.outcome ? 'error' or t.outcome->'status' >= '400', false))
     order by t.id desc limit $4`,
    [
      scope.vault,
      scope.days,
      before ?? null,
      limit,
      way ?? null,
      status ?? null,
      session ?? null,
      model ?? null,
      since === undefined ? null : new Date(since),
      until === undefined ? null : new Date(until),
      failed ?? null,
      ...parameters,
    ],
    name,
  )
  return rows
}

/** A memory that calls were given. */
export type RecalledMemory = {
  id: string
  /** Turns of the user, and searches, that it was recalled for. */
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
  { vault, days }: TraceScope,
  { since, limit }: { since: number; limit: number },
): Promise<RecalledMemory[]> {
  const { rows } = await query<RecalledMemory>(
    `select m.id::uuid as id, count(*)::integer as turns, max(c.created_at) as "lastAt",
            (array_agg(c.session order by c.id desc))[1] as session,
            (array_agg(c.trace->>'embeddings' order by c.id desc))[1] as embeddings
     from (select t.id, t.session, t.created_at, t.trace from ${tables}
           where t.vault = $1 and ${currentSql} and t.id >= $3 and t.created_at >= $4
           order by t.id desc limit $5) c,
       jsonb_array_elements(c.trace->'blocks') b, jsonb_array_elements_text(b->'ids') m(id)
     where b->'ranking' <> '[]'
     group by m.id order by turns desc, "lastAt" desc, m.id limit $6`,
    [vault, days, lowestIdAt(since - callMaxMs), new Date(since), countedTracesMax, limit],
    'call-traces.count-memories',
  )
  return rows
}

/** A trace is written at the end of its call, its id at the beginning. */
const callMaxMs = 3_600_000
