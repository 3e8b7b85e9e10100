import { erasedResponse, organizationRouteSql } from '#shared/operations/idempotency.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Erases the responses that are stored for Idempotency-Keys of changes and reviews of an organization's
 * shared memories, by any credential: one may show the words of another memory. The requests stay answered,
 * since run again they would decide about other words than before. Seedings answer with words of the request
 * alone.
 *
 * @param memory whose words go; what runs about it now stores no response
 */
export async function eraseAdminResponses(
  { query }: Transaction,
  org: string,
  memory: string,
): Promise<void> {
  await query(
    `delete from idempotency
     where ${organizationRouteSql('$1::uuid')} and answer is null and locked_until > now()
       and route ~ ('^(POST|PATCH) /v1/orgs/' || $1::uuid || '/memories/' || $2::uuid || '(/|$)')`,
    [org, memory],
    'shared.running-answers',
  )
  // In one order: concurrent erasures must not wait for each other crosswise.
  await query(
    `with shown as (
       select key_hash, route, idempotency from idempotency
       where ${organizationRouteSql('$1::uuid')} and answer <> $2
         and route ~ ('^(POST|PATCH) /v1/orgs/' || $1::uuid || '/memories/')
       order by key_hash, route, idempotency for update
     )
     update idempotency i set answer = $2 from shown s
     where (i.key_hash, i.route, i.idempotency) = (s.key_hash, s.route, s.idempotency)`,
    [org, erasedResponse],
    'shared.admin-answers',
  )
}
