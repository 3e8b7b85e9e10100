import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Admin } from '#shared/access/admin.ts'
import {
  recordAccountEvent,
  type AccountAction,
  type RecordedFields,
} from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

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
