import { policyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type ReviewerRow = {
  id: string
  email: string
  masked: string
  createdBy: string
  createdAt: Date
}

const columns = 'id, email, masked, created_by as "createdBy", created_at as "createdAt"'

export const reviewerRows = policyRows<ReviewerRow>('org_reviewers', columns)

/** Finds the reviewer of a credential, with the organization and its account. */
export async function findReviewerByHash(
  query: Query,
  hash: Buffer,
): Promise<{ email: string; account: string; org: string } | undefined> {
  const { rows } = await query<{ email: string; account: string; org: string }>(
    `select r.email, o.account, o.id as org
     from org_reviewers r join orgs o on o.id = r.org where r.hash = $1`,
    [hash],
    'reviewers.find',
  )
  return rows[0]
}

/**
 * Inserts a reviewer; a second insert under the same id replaces the credential.
 *
 * @returns the reviewer, and whether it is new.
 * @throws a unique violation when another reviewer has that email.
 */
export async function insertReviewer(
  { query }: Transaction,
  reviewer: Pick<ReviewerRow, 'id' | 'email' | 'masked' | 'createdBy'> & {
    org: string
    hash: Buffer
  },
): Promise<ReviewerRow & { isNew: boolean }> {
  const { id, org, email, hash, masked, createdBy } = reviewer
  const { rows } = await query<ReviewerRow & { isNew: boolean }>(
    `insert into org_reviewers (id, org, email, hash, masked, created_by)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set hash = excluded.hash, masked = excluded.masked
     returning ${columns}, xmax = 0 as "isNew"`,
    [id, org, email, hash, masked, createdBy],
  )
  return rows[0]!
}
