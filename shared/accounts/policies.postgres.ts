import type {
  StoragePolicy,
  StoragePolicyChange,
  TracePolicy,
  TracePolicyChange,
} from '#shared/domain/account-policies.ts'
import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Requests and tokens in 24 hours, millionths of a dollar in 30 days. */
type UserLimits = Record<'requests' | 'tokens' | 'micros', number | null>

/** The policy of an account, as it is stored. */
export type StoredAccountPolicy = {
  /** Null when the account has decided none. */
  redaction: StoredRedactionPolicy | null
  /** Days that memories are stored; null: without an end. */
  retentionDays: number | null
  /** Whether a request that names an unknown user creates them. */
  createUsers: boolean
  /** Budget of each user whose key has none of its own; null: none. */
  userLimits: UserLimits
  traces: TracePolicy
  storage: StoragePolicy
}

/** The policy of an existing account. */
export async function findAccountPolicy(
  query: Query,
  account: string,
): Promise<StoredAccountPolicy> {
  const { rows } = await query<StoredAccountPolicy>(
    `select redaction, retention_days as "retentionDays", create_users as "createUsers",
            json_build_object('requests', user_daily_requests, 'tokens', user_daily_tokens,
                              'micros', user_monthly_micros) as "userLimits",
            json_build_object('mode', traces, 'days', trace_days) as traces,
            json_build_object('verbatim', verbatim, 'responseWithInput', response_with_input,
                              'coreSessions', core_sessions, 'tellAbsence', tell_absence,
                              'keepFiles', keep_files) as storage
     from accounts where id = $1`,
    [account],
    'accounts.policy',
  )
  return rows[0]!
}

/** Fields of a policy to change. */
export type StoredPolicyChange = {
  redaction: StoredRedactionPolicy | undefined
  createUsers: boolean | undefined
  userLimits: { [Name in keyof UserLimits]: UserLimits[Name] | undefined }
  traces: TracePolicyChange
  storage: StoragePolicyChange
}

const columns = (
  'redaction create_users verbatim response_with_input traces trace_days user_daily_requests ' +
  'user_daily_tokens user_monthly_micros core_sessions tell_absence keep_files'
).split(' ')
const columnsOf = (row: 'a' | 'p'): string => columns.map(name => `${row}.${name}`).join(', ')

/**
 * Changes the given fields, from the next request on. Traces that end earlier by it, and questions that it keeps no
 * more, are gone at once for readers; the sweep deletes them.
 *
 * @returns whether anything changed.
 */
export async function putAccountPolicy(
  query: Query,
  account: string,
  { redaction, createUsers, userLimits, traces, storage }: StoredPolicyChange,
): Promise<boolean> {
  const { rowCount } = await query(
    `update accounts a set (${columns.join(', ')}) = (${columnsOf('p')}),
       traces_shortened_at = case
         when p.trace_days < a.trace_days
           or (a.traces, p.traces) in (('texts', 'ids'), ('texts', 'off'), ('ids', 'off'))
         then clock_timestamp() else a.traces_shortened_at end
     from (select id, coalesce($2::jsonb, redaction) as redaction,
                  coalesce($3, create_users) as create_users, coalesce($4, verbatim) as verbatim,
                  coalesce($5, response_with_input) as response_with_input,
                  coalesce($6, traces) as traces, coalesce($7, trace_days) as trace_days,
                  case when $8 then $9 else user_daily_requests end as user_daily_requests,
                  case when $10 then $11 else user_daily_tokens end as user_daily_tokens,
                  coalesce($12, core_sessions) as core_sessions,
                  coalesce($13, tell_absence) as tell_absence,
                  coalesce($16, keep_files) as keep_files,
                  case when $14 then $15 else user_monthly_micros end as user_monthly_micros
           from accounts where id = $1) p
     where a.id = p.id
       and (${columnsOf('a')}) is distinct from (${columnsOf('p')})`,
    [
      account,
      redaction && JSON.stringify(redaction),
      createUsers,
      storage.verbatim,
      storage.responseWithInput,
      traces.mode,
      traces.days,
      userLimits.requests !== undefined,
      userLimits.requests ?? null,
      userLimits.tokens !== undefined,
      userLimits.tokens ?? null,
      storage.coreSessions,
      storage.tellAbsence,
      userLimits.micros !== undefined,
      userLimits.micros ?? null,
      storage.keepFiles,
    ],
    'accounts.put-policy',
  )
  return rowCount === 1
}
