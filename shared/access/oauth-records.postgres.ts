import { activeSql } from '#shared/access/key-row.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Where a record is: its kind, and the HMAC of its id. */
type RecordPlace = { model: string; id: Buffer }

export type OAuthRecord = {
  /** Sealed. */
  payload: string
  /** When a code or refresh token was used; null within its grace. */
  consumedAt: Date | null
}

/** Time in which a used code or refresh token is good again: for an answer that was lost, or two requests at once. */
const grace = `interval '30 seconds'`

/**
 * Inserts a record, or replaces its payload and its end. It lives for so many seconds.
 *
 * @returns false when its application is gone.
 */
export async function upsertOAuthRecord(
  query: Query,
  record: RecordPlace & {
    payload: string
    seconds: number
    application: string | null
    grantId: Buffer | null
  },
): Promise<boolean> {
  const { model, id, payload, seconds, application, grantId } = record
  try {
    await query(
      `insert into oauth_records (model, id, payload, expires_at, application, grant_id)
     values ($1, $2, $3, now() + make_interval(secs => $4), $5, $6)
     on conflict (model, id) do update set payload = excluded.payload, expires_at = excluded.expires_at`,
      [model, id, payload, seconds, application, grantId],
      'oauth.upsert',
    )
    return true
  } catch (error) {
    if ((error as { code?: string }).code === '23503') return false
    throw error
  }
}

/** A record that has not ended; consumed ones too. */
export async function findOAuthRecord(
  query: Query,
  { model, id }: RecordPlace,
): Promise<OAuthRecord | undefined> {
  const { rows } = await query<OAuthRecord>(
    `select payload,
            case when consumed_at < now() - ${grace} then consumed_at end as "consumedAt"
     from oauth_records
     where model = $1 and id = $2 and expires_at > now()`,
    [model, id],
    'oauth.find',
  )
  return rows[0]
}

/**
 * Marks a code or refresh token as used, from the first time on. It stays for a week at most, so that a second use
 * is noticed.
 *
 * @returns false when its grace is over, or it is gone.
 */
export async function consumeOAuthRecord(
  query: Query,
  { model, id }: RecordPlace,
): Promise<boolean> {
  const { rowCount } = await query(
    `update oauth_records
     set consumed_at = coalesce(consumed_at, now()),
         expires_at = least(expires_at, now() + interval '7 days')
     where model = $1 and id = $2 and (consumed_at is null or consumed_at >= now() - ${grace})`,
    [model, id],
    'oauth.consume',
  )
  return rowCount > 0
}

/** Deletes a record; with a grant its application, and so all that was issued under it. @returns whether it was there. */
export async function deleteOAuthRecord(
  query: Query,
  { model, id }: RecordPlace,
): Promise<boolean> {
  const { rows } = await query<{ count: number }>(
    `with deleted as (
       delete from oauth_records where model = $1 and id = $2 returning application
     )
     , ended as (
       delete from applications where $1 = 'Grant' and id in (select application from deleted)
     )
     select count(*)::int as count from deleted`,
    [model, id],
    'oauth.delete',
  )
  return rows[0]!.count > 0
}

/** Deletes the records of a kind that were issued under a grant. */
export async function deleteOAuthRecordsOfGrant(
  query: Query,
  model: string,
  grantId: Buffer,
): Promise<void> {
  await query(
    'delete from oauth_records where model = $1 and grant_id = $2',
    [model, grantId],
    'oauth.delete-of-grant',
  )
}

/** Keeps a registered client for as long as an application uses it. */
export async function keepOAuthClient(query: Query, id: Buffer): Promise<void> {
  await query(
    `update oauth_records set expires_at = 'infinity' where model = 'Client' and id = $1`,
    [id],
    'oauth.keep-client',
  )
}

/** Rows that one run deletes at most of each kind. */
const batchMax = 10_000

/** Registered clients that no application uses; the newest are kept, at some 2 KB each. */
const unusedClientsMax = 20_000

/**
 * Deletes what has ended: records, the oldest of too many unused clients, and applications that have no token any more
 * or whose key has ended. A registered client that no application uses any more ends in 30 days. @returns how many rows.
 */
export async function dropEndedOAuth(query: Query): Promise<number> {
  const ended = await query(
    `delete from oauth_records where ctid = any(array(
       select ctid from oauth_records where expires_at < now() limit ${batchMax}))`,
  )
  const unused = await query(
    `delete from oauth_records where ctid = any(array(
       select ctid from oauth_records where model = 'Client' and expires_at < 'infinity'
       order by expires_at desc offset ${unusedClientsMax} limit ${batchMax}))`,
  )
  const applications = await query(
    `delete from applications where id in (
       select a.id from applications a join memory_keys k on k.hash = a.key_hash
       where not ${activeSql}
          or (a.created_at < now() - interval '1 hour'
              and not exists (select from oauth_records r
                              where r.application = a.id and r.model <> 'Grant'
                                and r.consumed_at is null))
       limit ${batchMax})`,
  )
  await query(
    `update oauth_records c set expires_at = now() + interval '30 days'
     where model = 'Client' and expires_at = 'infinity'
       and not exists (select from applications a where a.client = c.id)`,
  )
  return ended.rowCount + unused.rowCount + applications.rowCount
}
