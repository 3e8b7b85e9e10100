import { Refusal } from '#shared/core/errors.ts'
import type { Admin } from '#shared/access/admin.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  findOrg,
  lockOrg,
  isUniqueViolation,
  missingOrganization,
  type OrgRow,
} from '#shared/org/base/orgs.postgres.ts'
import { deleteMemberResponses } from '#shared/org/base/shared-bills.postgres.ts'

/**
 * An organization of an admin.
 *
 * @throws Refusal `missing`, in the same words for one of another admin and for one that is not there.
 */
export async function requireOrganization(
  query: Query,
  { account }: Pick<Admin, 'account'>,
  id: string,
): Promise<OrgRow> {
  const org = await findOrg(query, account, id)
  if (org) return org
  throw missingOrganization()
}

/**
 * An organization that an admin or a reviewer may review.
 *
 * @param reviews of a reviewer: the only organization
 * @throws Refusal `missing` for any other.
 */
export async function requireReviewedOrganization(
  query: Query,
  { account, reviews }: { account: string; reviews: string | null },
  id: string,
): Promise<OrgRow> {
  const org = await findOrg(query, account, id, reviews)
  if (org) return org
  throw missingOrganization()
}

/** Whose policy is changed, and the message when another row has the name. */
export type PolicyChange = { admin: Pick<Admin, 'account'>; org: string; conflictMessage?: string }

/**
 * Runs a change to an organization's policy: changes follow one another, and the next request of every
 * member sees it, also one that is sent again under its Idempotency-Key.
 *
 * @throws Refusal `missing` as `requireOrganization`; `conflict` when a name, label or email is taken.
 */
export async function changePolicy<Result>(
  { postgres }: { postgres: Postgres },
  { admin, org, conflictMessage = 'This is taken already' }: PolicyChange,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  try {
    return await postgres.transaction(async tx => {
      if (!(await lockOrg(tx, admin.account, org))) throw missingOrganization()
      const result = await work(tx)
      await deleteMemberResponses(tx, org)
      return result
    })
  } catch (error) {
    throw isUniqueViolation(error)
      ? new Refusal('conflict', conflictMessage, 'Choose another one')
      : error
  }
}
