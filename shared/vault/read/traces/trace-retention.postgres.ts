import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

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

/**
 * Gives the traces of one account whose policy was shortened the end that it has now, and drops the questions where it
 * has no texts any more. @returns how many.
 */
export async function shortenTraces(query: Query): Promise<number> {
  const { rows } = await query<{ id: string; at: string; end: number; texts: boolean }>(
    `select id, traces_shortened_at::text as at, traces = 'texts' as texts,
            case when traces = 'off' then 0 else trace_days end as end
     from accounts where traces_shortened_at is not null order by traces_shortened_at limit 1`,
    [],
    'call-traces.shortened-account',
  )
  const account = rows[0]
  if (!account) return 0
  const { rowCount } = await query(
    `update call_traces set
       expires_at = least(expires_at, created_at + make_interval(days => $2)),
       question = case when $4 then question end,
       question_marks = case when $4 then question_marks end
     where ctid = any(array(
       select t.ctid from call_traces t join vaults v on v.id = t.vault
       where v.account = $1 and (t.expires_at > t.created_at + make_interval(days => $2)
                                 or (not $4 and t.question is not null))
       limit $3))`,
    [account.id, account.end, dropMax, account.texts],
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
