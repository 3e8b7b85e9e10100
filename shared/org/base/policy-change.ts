import { Refusal } from '#shared/core/errors.ts'
import type { Admin } from '#shared/access/admin.ts'
import type { Query, Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  findOrg,
  lockOrg,
  isUniqueViolation,
  missingOrganization,
  type OrgRow,
  deleteMemberResponses,
} from '#shared/org/base/orgs.postgres.ts'
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  recordAccountEvent,
  type AccountAction,
  type RecordedFields,
} from '#shared/events/account-events.postgres.ts'

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

type PolicyEvent = {
  action: AccountAction
  /** The id of what was changed, or a key, masked. */
  subject: string
  /** Null: it was not there before. */
  before: RecordedFields | null
  /** Null: it is gone. */
  after: RecordedFields | null
}

/**
 * Records who changed a part of an organization, in the transaction of the change: of a change only the
 * fields that differ, and the name. Nothing when none differs.
 */
export async function recordPolicyEvent(
  tx: Transaction,
  {
    admin: { account, email: actor },
    org,
  }: { admin: Pick<Admin, 'account' | 'email'>; org: string },
  { action, subject, before, after }: PolicyEvent,
): Promise<void> {
  const differing = before && after ? differingFields(before, after) : undefined
  if (differing?.length === 0) return
  const change = [toRecorded(before, differing), toRecorded(after, differing)] as const
  const organization = org.toLowerCase()
  await recordAccountEvent(tx, { account, actor, action, subject, change, organization })
}

/** A digest that differs where words do that an event must not hold, in hexadecimal digits. */
export const digestOf = (words: unknown): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex')

/** Fields that say of what a change is, and stand in its event though they are the same. */
const namingFields = ['name', 'label', 'team_member_id']

const differingFields = (before: RecordedFields, after: RecordedFields): string[] =>
  Object.keys(after).filter(field => !isDeepStrictEqual(before[field], after[field]))

function toRecorded(
  fields: RecordedFields | null,
  differing: readonly string[] | undefined,
): RecordedFields | null {
  if (!fields || !differing) return fields
  const kept = new Set([...namingFields, ...differing])
  return Object.fromEntries(Object.entries(fields).filter(([field]) => kept.has(field)))
}
