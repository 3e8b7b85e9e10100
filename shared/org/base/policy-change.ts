import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Admin } from '#shared/access/admin.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  recordAccountEvent,
  type AccountAction,
  type RecordedFields,
} from '#shared/events/account-events.postgres.ts'
import {
  deleteMemberResponses,
  findOrg,
  isUniqueViolation,
  lockOrg,
  missingOrganization,
  type OrgRow,
} from '#shared/org/base/orgs.postgres.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** An organization, and the admin who asks or acts. */
export type OrgAdmin = { admin: Admin; org: string }

/**
 * Reads an organization of an admin, or the one that a reviewer may review.
 *
 * @param reviews the only organization of a reviewer; null for admins
 * @throws Refusal `missing` in the same words for one of another admin and for an unknown one.
 */
export async function requireOrganization(
  query: Query,
  { account, reviews = null }: { account: string; reviews?: string | null },
  id: string,
): Promise<OrgRow> {
  const org = await findOrg(query, account, id, reviews)
  if (org) return org
  throw missingOrganization()
}

/**
 * Runs a change to an organization's policy. Changes to one organization follow one another. The next request
 * of every member sees the change, also one that repeats an Idempotency-Key.
 *
 * @param policyChange.conflictMessage for a name, label or email that another row has
 * @throws Refusal `missing` as `requireOrganization`; `conflict` when a name, label or email is taken.
 */
export async function changePolicy<Result>(
  { postgres }: { postgres: Postgres },
  policyChange: { admin: Pick<Admin, 'account'>; org: string; conflictMessage?: string },
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const { admin, org, conflictMessage = 'This is taken already' } = policyChange
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

/**
 * Changes one part of a policy and records the fields that differ.
 *
 * @param subjectOf the id of the part; the organization's own without it
 * @throws Refusal as `changePolicy`, `read` and `write`.
 */
export const changePart = <Part>(
  backend: { postgres: Postgres },
  scope: { admin: Pick<Admin, 'account' | 'email'>; org: string; conflictMessage?: string },
  {
    action,
    subjectOf,
    read,
    write,
    toRecorded,
  }: {
    action: AccountAction
    subjectOf?: (part: Part) => string
    read: (query: Query) => Promise<Part>
    write: (tx: Transaction, before: Part) => Promise<void>
    toRecorded: (part: Part) => RecordedFields
  },
): Promise<Part> =>
  changePolicy(backend, scope, async tx => {
    const before = await read(tx.query)
    await write(tx, before)
    const after = await read(tx.query)
    await recordPolicyEvent(tx, scope, {
      action,
      subject: subjectOf?.(after) ?? scope.org.toLowerCase(),
      before: toRecorded(before),
      after: toRecorded(after),
    })
    return after
  })

/**
 * Records an event of the account in the transaction of the change. A change is recorded with its name and the
 * fields that differ, and not at all when none differs.
 *
 * @param event.subject the id of what changed, or a masked key; `before` is null for a new row, `after` for a deleted one
 */
export async function recordPolicyEvent(
  tx: Transaction,
  { admin, org }: { admin: Pick<Admin, 'account' | 'email'>; org: string },
  event: {
    action: AccountAction
    subject: string
    before: RecordedFields | null
    after: RecordedFields | null
  },
): Promise<void> {
  const { action, subject, before, after } = event
  const differing = before && after ? differingFields(before, after) : undefined
  if (differing?.length === 0) return
  const { account, email: actor } = admin
  const change = [toRecorded(before, differing), toRecorded(after, differing)] as const
  const organization = org.toLowerCase()
  await recordAccountEvent(tx, { account, actor, action, subject, change, organization })
}

/** A SHA-256 in hexadecimal digits, recorded in place of words that an event must not hold. */
export const digestOf = (words: unknown): string =>
  createHash('sha256').update(JSON.stringify(words)).digest('hex')

/** Fields that identify a row and are recorded even when they are unchanged. */
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
