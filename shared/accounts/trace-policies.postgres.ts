import type { TracePolicy, TracePolicyChange } from '#shared/domain/trace-policy.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What an account decides about the traces of its model calls. */
export async function findTracePolicy(query: Query, account: string): Promise<TracePolicy> {
  const { rows } = await query<TracePolicy>(
    'select traces as mode, trace_days as days from accounts where id = $1',
    [account],
    'accounts.trace-policy',
  )
  return rows[0] ?? { mode: 'off', days: 1 }
}

/**
 * Changes what is given, from the next request on. Where traces are to end earlier, those that are there end at
 * once for readers, and are deleted by the sweep.
 *
 * @returns whether anything changed.
 */
export async function putTracePolicy(
  query: Query,
  account: string,
  { mode, days }: TracePolicyChange,
): Promise<boolean> {
  const { rowCount } = await query(
    `update accounts set traces = coalesce($2, traces), trace_days = coalesce($3, trace_days),
       traces_shortened_at = case when $2 = 'off' or $3 < trace_days then clock_timestamp()
                                  else traces_shortened_at end
     where id = $1 and (traces <> coalesce($2, traces) or trace_days <> coalesce($3, trace_days))`,
    [account, mode ?? null, days ?? null],
    'accounts.put-trace-policy',
  )
  return rowCount === 1
}
