import type { Admin } from '#shared/access/admin.ts'
import { organizationOf, changePolicy } from '#shared/org/policy.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import { type Redaction, inForce } from '#shared/privacy/redaction-policy.ts'
import { orgRedaction, putOrgRedaction } from '#shared/org/redaction.postgres.ts'
import { type Policy, undecided, type Asked, decided } from '#shared/privacy/redaction-decision.ts'

/**
 * What holds for the members of an organization and for what they share.
 *
 * @throws Refusal `missing` when it is not the admin's.
 */
export async function policyOfOrg(
  { postgres }: { postgres: Postgres },
  { admin, org }: { admin: Admin; org: string },
): Promise<Policy> {
  const { id } = await organizationOf(postgres.query, admin, org)
  return policyInForce(postgres.query, id)
}

/** What holds for an organization, whoever asks. */
export async function policyInForce(query: Query, org: string): Promise<Policy> {
  const found = await orgRedaction(query, org)
  if (!found?.effective) return { redaction: undecided, from: 'default' }
  return { redaction: found.effective, from: found.own ? 'organization' : 'account' }
}

/**
 * Decides for an organization; null leaves it to the account it belongs to.
 *
 * @throws Refusal `missing` when it is not the admin's.
 */
export const decideForOrg = (
  backend: { postgres: Postgres },
  { admin, org }: { admin: Admin; org: string },
  asked: Asked | null,
): Promise<void> =>
  changePolicy(backend, { admin, org }, tx =>
    putOrgRedaction(tx.query, org, asked && decided(asked)),
  )

/** What holds for the shared memory of an organization at this moment. */
export async function redactionOfOrg(query: Query, org: string): Promise<Redaction | null> {
  return inForce((await orgRedaction(query, org))?.effective ?? null)
}
