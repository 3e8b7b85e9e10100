import { findAdminByCredential, type Admin } from '#shared/access/admin.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import type { Config } from '#shared/core/config.ts'
import { changePolicy, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import { policyResource } from '#shared/org/base/policy-resource.ts'
import {
  deleteReviewer,
  findReviewerByHash,
  insertReviewer,
  reviewerRows,
  type ReviewerRow,
} from '#shared/org/base/reviewers.postgres.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'

/** An admin, or a reviewer of one organization, with the account that it belongs to. */
export type Reviewer = Admin & {
  /** The only organization of a reviewer; null: all of the account. */
  reviews: string | null
}

/**
 * Finds the admin or the reviewer of a credential.
 *
 * @returns undefined for a credential that is unknown, expired or revoked.
 */
export async function findReviewerByCredential(
  backend: { postgres: Postgres; config: Config },
  credential: string,
): Promise<Reviewer | undefined> {
  const admin = await findAdminByCredential(backend, credential)
  if (admin) return { ...admin, reviews: null }
  const keyHash = hashKey(backend.config.keyPepper, credential)
  const reviewer = await findReviewerByHash(backend.postgres.query, keyHash)
  if (!reviewer) return undefined
  const { email, account, org } = reviewer
  return { email, account, keyHash, reviews: org }
}

const conflictMessage = 'The organization has a reviewer of this email'

const reviewers = policyResource({
  name: 'reviewer',
  rows: reviewerRows,
  conflictMessage,
  toRecorded: ({ email, masked }: ReviewerRow) => ({ email, key: masked }),
})

/** A removed reviewer's credential opens nothing from the next request on. */
export const { remove: removeReviewer, record: recordReviewer } = reviewers

/** Removes the reviewer of an email, if there is one: who leaves an organization reviews no more. */
export async function deleteReviewerOf(
  tx: Transaction,
  scope: OrgAdmin,
  email: string | null,
): Promise<void> {
  const removed = email === null ? undefined : await deleteReviewer(tx, scope.org, email)
  if (removed) await reviewers.record(tx, scope, 'reviewer.deleted', { before: removed })
}

/**
 * Creates a reviewer, who sees the review queue of the organization and decides about it, and can neither
 * read or mint keys nor change policy. Repeated under the same operation it replaces the credential.
 *
 * @param operation becomes the reviewer's id
 * @returns the reviewer and the raw credential, which is shown once.
 * @throws Refusal as `policyResource`.
 */
export const createReviewer = (
  backend: { postgres: Postgres; config: Config },
  { admin, org }: OrgAdmin,
  { email, operation }: { email: string; operation: string },
): Promise<{ reviewer: ReviewerRow; key: string }> =>
  changePolicy(backend, { admin, org, conflictMessage }, async tx => {
    const key = mintKey('admin')
    const { isNew, ...reviewer } = await insertReviewer(tx, {
      id: operation,
      org,
      email: email.toLowerCase(),
      hash: hashKey(backend.config.keyPepper, key),
      masked: maskKey(key),
      createdBy: admin.email,
    })
    if (isNew) await reviewers.record(tx, { admin, org }, 'reviewer.created', { after: reviewer })
    return { reviewer, key }
  })
