import type { Query } from '#shared/storage/postgres/connect.ts'

/** Who asked for what, under which Idempotency-Key. */
export type IdempotentRequest = {
  keyHash: Buffer
  /** Method and path as they were asked. */
  route: string
  idempotencyKey: string
  bodyHash: Buffer
}

export type ClaimResult =
  /** Ours to run, under this operation id. */
  | { state: 'begun'; operation: string }
  /** Another request with this key is still running. */
  | { state: 'running' }
  /** It has answered: the sealed answer. */
  | { state: 'answered'; answer: string }
  /** The key was used for another request. */
  | { state: 'other' }

/** A request that has not answered after this long has died with its process, and may be tried again. */
const defaultLockSeconds = 60

/**
 * Claims an Idempotency-Key for a day. Of many at once exactly one begins. A claim whose process died,
 * or that failed, is taken over under the operation id it had, so that work it had promised is not promised
 * twice.
 */
export async function tryClaimIdempotencyKey(
  query: Query,
  request: IdempotentRequest,
  operation: string,
  lockSeconds = defaultLockSeconds,
): Promise<ClaimResult> {
  const { keyHash, route, idempotencyKey, bodyHash } = request
  const { rows } = await query<{
    begun: string | null
    operation: string | null
    answer: string | null
    same: boolean
  }>(
    `with claimed as (
       insert into idempotency as i (key_hash, route, idempotency, body_hash, operation, locked_until)
       values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
       on conflict (key_hash, route, idempotency) do update
         set locked_until = excluded.locked_until,
             body_hash = excluded.body_hash,
             operation = case when i.created_at < now() - interval '24 hours'
                              then excluded.operation else i.operation end,
             answer = null,
             created_at = case when i.created_at < now() - interval '24 hours'
                               then now() else i.created_at end
         where i.created_at < now() - interval '24 hours'
            or (i.answer is null and i.locked_until < now() and i.body_hash = excluded.body_hash)
       returning operation
     )
     select c.operation as begun, i.operation, i.answer, i.body_hash = $4 as same
     from (select 1) one left join claimed c on true
     left join idempotency i on i.key_hash = $1 and i.route = $2 and i.idempotency = $3`,
    [keyHash, route, idempotencyKey, bodyHash, operation, lockSeconds],
    'idempotency.begin',
  )
  const row = rows[0]!
  // Another request claimed it after this statement had begun: its row can be read now.
  if (row.begun === null && row.operation === null)
    return tryClaimIdempotencyKey(query, request, operation, lockSeconds)
  if (row.begun !== null) return { state: 'begun', operation: row.begun }
  if (!row.same) return { state: 'other' }
  return row.answer === null ? { state: 'running' } : { state: 'answered', answer: row.answer }
}

/** A request that has claimed its key, and what it runs under. */
type IdempotencyClaimRow = IdempotentRequest & { operation: string }

/**
 * Keeps the answer for whoever asks again; not when the claim has been forgotten because what it tells was
 * deleted, even if the key has been claimed anew since.
 */
export async function saveIdempotentResponse(
  query: Query,
  { keyHash, route, idempotencyKey, operation }: IdempotencyClaimRow,
  answer: string,
): Promise<void> {
  await query(
    `update idempotency set answer = $5
     where key_hash = $1 and route = $2 and idempotency = $3 and operation = $4`,
    [keyHash, route, idempotencyKey, operation, answer],
    'idempotency.keep',
  )
}

/** The answer that is kept for a request, for a day; undefined when there is none, or it asked for another. */
export async function findIdempotentResponse(
  query: Query,
  { keyHash, route, idempotencyKey, bodyHash }: IdempotentRequest,
): Promise<string | undefined> {
  const { rows } = await query<{ answer: string }>(
    `select answer from idempotency
     where key_hash = $1 and route = $2 and idempotency = $3 and body_hash = $4
       and answer is not null and created_at >= now() - interval '24 hours'`,
    [keyHash, route, idempotencyKey, bodyHash],
  )
  return rows[0]?.answer
}

/** Whether somebody has claimed this Idempotency-Key within a day, for whatever body. */
export async function isKnownIdempotencyKey(
  query: Query,
  { keyHash, route, idempotencyKey }: Omit<IdempotentRequest, 'bodyHash'>,
): Promise<boolean> {
  const { rowCount } = await query(
    `select from idempotency
     where key_hash = $1 and route = $2 and idempotency = $3
       and created_at >= now() - interval '24 hours'`,
    [keyHash, route, idempotencyKey],
  )
  return rowCount > 0
}

/**
 * Lets go of a claim whose request failed: it may have promised its work, and whoever sends it again
 * goes on under its operation.
 */
export async function unlockIdempotencyClaim(
  query: Query,
  { keyHash, route, idempotencyKey, operation }: IdempotencyClaimRow,
): Promise<void> {
  await query(
    `update idempotency set locked_until = '-infinity'
     where key_hash = $1 and route = $2 and idempotency = $3 and operation = $4 and answer is null`,
    [keyHash, route, idempotencyKey, operation],
  )
}

/** Gives a claim up: the request was refused before it did anything, and may be sent again. */
export async function releaseIdempotencyClaim(
  query: Query,
  { keyHash, route, idempotencyKey, operation }: IdempotencyClaimRow,
): Promise<void> {
  await query(
    `delete from idempotency
     where key_hash = $1 and route = $2 and idempotency = $3 and operation = $4 and answer is null`,
    [keyHash, route, idempotencyKey, operation],
  )
}
