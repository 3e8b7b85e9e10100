import type { Admin } from '#shared/access/admin.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { AccountAction, RecordedFields } from '#shared/events/account-events.postgres.ts'
import {
  changePolicy,
  requireOrganization,
  recordPolicyEvent,
} from '#shared/org/base/policy-change.ts'
import { isRemovalRecorded, recordRemoval } from '#shared/org/base/orgs.postgres.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'

/*
 * What is the same for roles, tags, users and reviewers: rows of an organization that its admin lists,
 * changes and removes, each with an event of the account.
 */

/** An organization, and the admin who asks or acts. */
export type OrgAdmin = { admin: Admin; org: string }

/**
 * The rows of an organization, as `list` reads them.
 *
 * @throws Refusal `missing` when the admin has no such organization.
 */
export async function listParts<Row>(
  { postgres: { query } }: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  list: (query: Query, org: string) => Promise<Row[]>,
): Promise<Row[]> {
  await requireOrganization(query, admin, org)
  return list(query, org)
}

/** @throws Refusal `missing` where there is no row. */
export function requirePart<Row>(
  row: Row | undefined,
  name: 'role' | 'tag' | 'user' | 'reviewer',
): Row {
  if (row) return row
  throw new Refusal('missing', `No such ${name}`, `GET /v1/orgs/:orgId/${name}s lists them`)
}

/**
 * Removes a row in a change of the organization's policy. Repeated under the same operation it removes
 * nothing.
 *
 * @throws Refusal `missing`, and as `remove`.
 */
export const removePart = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  operation: string,
  remove: (tx: Transaction) => Promise<void>,
): Promise<void> =>
  changePolicy(backend, { admin, org }, async tx => {
    if (await isRemovalRecorded(tx.query, operation)) return
    await remove(tx)
    await recordRemoval(tx, { org, operation })
  })

/**
 * A recorder of what is done to rows: null before when a row is new, null after when it is gone.
 *
 * @param toRecorded the fields of a row that its events hold
 */
export const createPartRecorder =
  <Row extends { id: string }, Action extends AccountAction>(
    toRecorded: (row: Row) => RecordedFields,
  ) =>
  (
    tx: Transaction,
    scope: OrgAdmin,
    action: Action,
    { before = null, after = null }: { before?: Row | null; after?: Row | null },
  ): Promise<void> =>
    recordPolicyEvent(tx, scope, {
      action,
      subject: (after ?? before)!.id,
      before: before && toRecorded(before),
      after: after && toRecorded(after),
    })
