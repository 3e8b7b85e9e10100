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

/** Deletes the reviewer of an email. @returns it, if there was one. */
export async function deleteReviewer(
  { query }: Transaction,
  org: string,
  email: string,
): Promise<ReviewerRow | undefined> {
  const { rows } = await query<ReviewerRow>(
    `delete from org_reviewers where org = $1 and email = $2 returning ${columns}`,
    [org, email],
  )
  return rows[0]
}

/** Finds the reviewer of a credential, with the organization and its account. */
export async function findReviewerByHash(
  query: Query,
  hash: Buffer,
): Promise<{ email: string; account: string; org: string } | undefined> {
  const { rows } = await query<{ email: string; account: string; org: string }>(
    `select r.email, o.account, o.id as org
     from org_reviewers r join orgs o on o.id = r.org
     where (r.hash = $1 and not o.sign_in_required) or r.id = (
       select reviewer from org_reviewer_logins where hash = $1 and expires_at > now())`,
    [hash],
    'reviewers.find',
  )
  return rows[0]
}

/** Keeps a credential of a reviewer that a sign-in has made, and drops those that have ended. */
export async function insertReviewerLogin(
  query: Query,
  { hash, reviewer, expiresAt }: { hash: Buffer; reviewer: string; expiresAt: Date },
): Promise<void> {
  await query(
    `with ended as (delete from org_reviewer_logins where reviewer = $2 and expires_at < now())
     insert into org_reviewer_logins (hash, reviewer, expires_at) values ($1, $2, $3)`,
    [hash, reviewer, expiresAt],
    'reviewers.login',
  )
}

/** Ends a credential that a sign-in has made. @returns whether there was one. */
export async function deleteReviewerLogin(query: Query, hash: Buffer): Promise<boolean> {
  const { rowCount } = await query('delete from org_reviewer_logins where hash = $1', [hash])
  return rowCount === 1
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
