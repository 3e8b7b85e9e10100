import type { Query } from '#shared/storage/postgres/connect.ts'

/** The request of an Idempotency-Key: whose, and what. */
export type IdempotentRequest = {
  keyHash: Buffer
  /** Method and path, the same for every spelling of the path: erasures find stored responses by it. */
  route: string
  idempotencyKey: string
  bodyHash: Buffer
}

/** In place of a stored response whose words were erased: the request stays answered. */
export const erasedResponse = ''

/**
 * A condition for the stored responses to requests below `/v1/orgs/:org_id/`, whatever credential sent them: an
 * index has them by organization.
 *
 * @param org SQL of the id, a uuid
 */
export const organizationRouteSql = (org: string): string =>
  `route like '% /v1/orgs/%/%' and split_part(route, '/', 4) = ${org}::text`

/**
 * After this long without a response, the process of the request has died, and it may be sent
 * again.
 */
const defaultLockSeconds = 60

/**
 * Claims an Idempotency-Key for a day. Exactly one of concurrent claims succeeds. A claim that
 * failed, or whose process died, is taken over with its operation id, so that its work is not
 * accepted twice.
 */
export async function tryClaimIdempotencyKey(
  query: Query,
  request: IdempotentRequest,
  operation: string,
  lockSeconds = defaultLockSeconds,
): Promise<
  /** The claim is new: run the request under this operation id. */
  | { state: 'begun'; operation: string }
  /** Another request with this key is still running. */
  | { state: 'running' }
  /** The request has ended: its sealed response, or `erasedResponse`. */
  | { state: 'answered'; answer: string }
  /** The key was used for another request. */
  | { state: 'other' }
> {
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
  // Another request claimed it after this statement had started: its row can be read now.
  if (row.begun === null && row.operation === null)
    return tryClaimIdempotencyKey(query, request, operation, lockSeconds)
  if (row.begun !== null) return { state: 'begun', operation: row.begun }
  if (!row.same) return { state: 'other' }
  return row.answer === null ? { state: 'running' } : { state: 'answered', answer: row.answer }
}

/** A request that has claimed its key, and its operation id. */
type IdempotencyClaimRow = IdempotentRequest & { operation: string }

/**
 * Stores the response for repeated requests; not when the claim was removed because the data in the
 * response was deleted, even if the key was claimed again since.
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

/**
 * The stored response of a request, for a day; undefined when there is none, or it was another
 * request.
 */
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

/** Whether this Idempotency-Key was claimed within a day, with any body. */
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
 * Releases a claim whose request failed: its work may be accepted already, so a repeated request
 * continues under the same operation id.
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

/** Deletes a claim: the request was refused before it had any effect, and may be sent again. */
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

/**
 * Deletes the claims of a credential with their responses.
 *
 * @param except the operation of a claim that stays
 */
export async function deleteIdempotencyClaims(
  query: Query,
  keyHash: Buffer,
  { except }: { except: string },
): Promise<void> {
  await query('delete from idempotency where key_hash = $1 and operation <> $2', [keyHash, except])
}
