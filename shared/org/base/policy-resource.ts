import { Refusal } from '#shared/core/errors.ts'
import type { AccountAction, RecordedFields } from '#shared/events/account-events.postgres.ts'
import { isRemovalRecorded, recordRemoval } from '#shared/org/base/orgs.postgres.ts'
import {
  changePart,
  changePolicy,
  recordPolicyEvent,
  type OrgAdmin,
} from '#shared/org/base/policy-change.ts'
import type { PolicyRows } from '#shared/org/base/policy-rows.postgres.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Builds what roles, tags, users and reviewers have in common: an admin creates, changes and removes
 * them, each change is an event of the account, and a repeated request changes nothing more.
 *
 * Every function throws Refusal `missing` when the admin has no such organization, or it has no such row;
 * those that change one throw `conflict` when another row has the name.
 *
 * @param conflictMessage the refusal of a name that is taken
 * @param toRecorded the fields of a row that its events hold
 */
export function policyResource<Row extends { id: string }, Name extends PolicyName>({
  name,
  rows,
  conflictMessage,
  toRecorded,
}: {
  name: Name
  rows: PolicyRows<Row>
  conflictMessage: string
  toRecorded: (row: Row) => RecordedFields
}) {
  const require = async (query: Query, org: string, id: string): Promise<Row> => {
    const row = await rows.find(query, org, id)
    if (row) return row
    const shown = name.replace('_', '-')
    throw new Refusal('missing', `No such ${shown}`, `GET /v1/orgs/:orgId/${shown}s lists them`)
  }
  const record = (
    tx: Transaction,
    scope: OrgAdmin,
    action: AccountAction,
    { before = null, after = null }: { before?: Row | null; after?: Row | null },
  ): Promise<void> =>
    recordPolicyEvent(tx, scope, {
      action,
      subject: (after ?? before)!.id,
      before: before && toRecorded(before),
      after: after && toRecorded(after),
    })
  return {
    require,
    record,
    /** @param operation becomes the id of the row that `insert` writes */
    create: (
      backend: { postgres: Postgres },
      scope: OrgAdmin,
      operation: string,
      insert: (tx: Transaction) => Promise<void>,
    ): Promise<Row> =>
      changePolicy(backend, { ...scope, conflictMessage }, async tx => {
        const existing = await rows.find(tx.query, scope.org, operation)
        if (existing) return existing
        await insert(tx)
        const row = await require(tx.query, scope.org, operation)
        await record(tx, scope, `${name}.created`, { after: row })
        return row
      }),
    change: (
      backend: { postgres: Postgres },
      scope: OrgAdmin,
      id: string,
      update: (tx: Transaction, before: Row) => Promise<void>,
    ): Promise<Row> =>
      changePart(
        backend,
        { ...scope, conflictMessage },
        {
          action: `${name as Exclude<PolicyName, 'reviewer' | 'scim_token'>}.changed`,
          subjectOf: row => row.id,
          read: query => require(query, scope.org, id),
          write: update,
          toRecorded,
        },
      ),
    /** @returns the row that was removed; undefined when this operation has removed it before */
    remove: (
      backend: { postgres: Postgres },
      scope: OrgAdmin,
      id: string,
      operation: string,
      prepare?: (tx: Transaction, row: Row) => Promise<void>,
    ): Promise<Row | undefined> =>
      changePolicy(backend, scope, async tx => {
        if (await isRemovalRecorded(tx.query, operation)) return undefined
        const row = await require(tx.query, scope.org, id)
        await prepare?.(tx, row)
        await rows.remove(tx, row.id)
        await record(tx, scope, `${name}.deleted`, { before: row })
        await recordRemoval(tx, { org: scope.org, operation })
        return row
      }),
  }
}

type PolicyName = 'role' | 'tag' | 'user' | 'group' | 'reviewer' | 'scim_token'
