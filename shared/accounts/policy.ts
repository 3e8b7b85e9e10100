import {
  findAccountPolicy,
  putAccountPolicy,
  type StoredAccountPolicy,
  type StoredPolicyChange,
} from '#shared/accounts/policies.postgres.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import {
  defaultRedaction,
  toStoredRedaction,
  type EffectivePolicy,
  type RedactionInput,
} from '#shared/privacy/apply-redaction.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { setAccountRetention } from '#shared/vault/delete/retention.ts'

export type AccountPolicy = EffectivePolicy & Omit<StoredAccountPolicy, 'redaction'>

/** The policy of an account; by default nothing is redacted and memories do not expire. */
export async function readAccountPolicy(query: Query, account: string): Promise<AccountPolicy> {
  const { redaction, ...policy } = await findAccountPolicy(query, account)
  const decidedBy = redaction ? 'account' : 'default'
  return { ...policy, redaction: redaction ?? defaultRedaction, decidedBy }
}

/** The fields to change. */
export type AccountPolicyChange = Omit<StoredPolicyChange, 'redaction'> & {
  /** The UUIDv7 of the operation that applies a changed retention to stored memories. */
  operation: string
  redaction: RedactionInput | undefined
  retentionDays: number | null | undefined
}

/**
 * Changes an account's policy. Its organizations follow in redaction, unless they have a redaction of their own.
 *
 * @returns whether the operation exists: stored memories get another end by it.
 */
export const changeAccountPolicy = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, actor }: { account: string; actor: string },
  { operation, redaction, retentionDays: days, ...change }: AccountPolicyChange,
): Promise<boolean> =>
  postgres.transaction(async tx => {
    const stored = { ...change, redaction: redaction && toStoredRedaction(redaction) }
    const isChanged = await putAccountPolicy(tx.query, account, stored)
    const retention =
      days === undefined
        ? 'unchanged'
        : await setAccountRetention({ queue }, tx, { operation, account, days })
    if (isChanged || retention !== 'unchanged') {
      const event = { account, actor, action: 'policy.changed', subject: 'account' } as const
      await recordAccountEvent(tx, event)
    }
    return retention === 'accepted'
  })
