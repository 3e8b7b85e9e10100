import { setAccountRetention } from '#shared/vault/delete/retention.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  findAccountRedaction,
  putAccountRedaction,
} from '#shared/accounts/redaction-policies.postgres.ts'
import { findAccountRetention } from '#shared/vault/delete/retentions.postgres.ts'
import {
  type EffectivePolicy,
  defaultRedaction,
  type RedactionInput,
  toStoredRedaction,
} from '#shared/privacy/redaction-decision.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** Redaction, and the days that memories are stored; null: without an end. */
export type AccountPolicy = EffectivePolicy & { retentionDays: number | null }

/** The policy of an account; by default nothing is redacted and memories do not expire. */
export async function readAccountPolicy(query: Query, account: string): Promise<AccountPolicy> {
  const redaction = await findAccountRedaction(query, account)
  const retentionDays = await findAccountRetention(query, account)
  return redaction
    ? { redaction, decidedBy: 'account', retentionDays }
    : { redaction: defaultRedaction, decidedBy: 'default', retentionDays }
}

export type AccountPolicyChange = {
  /** The UUIDv7 of the operation that applies a changed retention to stored memories. */
  operation: string
  redaction: RedactionInput | undefined
  retentionDays: number | null | undefined
}

/**
 * Changes what is given of an account's policy. Its organizations follow in redaction, unless they have a
 * redaction of their own.
 *
 * @returns whether the operation exists: stored memories get another end by it.
 */
export const changeAccountPolicy = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, actor }: { account: string; actor: string },
  { operation, redaction, retentionDays: days }: AccountPolicyChange,
): Promise<boolean> =>
  postgres.transaction(async tx => {
    if (redaction && (await putAccountRedaction(tx.query, account, toStoredRedaction(redaction)))) {
      const event = { account, actor, action: 'policy.changed', subject: 'account' } as const
      await recordAccountEvent(tx, event)
    }
    if (days === undefined) return false
    return setAccountRetention({ queue }, tx, { operation, account, actor, days })
  })
