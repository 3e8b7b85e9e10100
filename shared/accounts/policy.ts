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
import { recordAccountEvent } from '#shared/audit/account-events.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** What an account decides for itself alone, too: for how many days it remembers; null: for good. */
export type AccountPolicy = EffectivePolicy & { retentionDays: number | null }

/** What holds for an account: nothing is looked for, and all is kept, until it decides otherwise. */
export async function readAccountPolicy(query: Query, account: string): Promise<AccountPolicy> {
  const redaction = await findAccountRedaction(query, account)
  const retentionDays = await findAccountRetention(query, account)
  return redaction
    ? { redaction, decidedBy: 'account', retentionDays }
    : { redaction: defaultRedaction, decidedBy: 'default', retentionDays }
}

export type AccountPolicyChange = {
  /** The UUIDv7 under which a changed retention reaches what is there. */
  operation: string
  redaction: RedactionInput | undefined
  retentionDays: number | null | undefined
}

/**
 * Decides for an account, in what is given; its members' organizations follow in what becomes of private
 * data, unless they decide for themselves.
 *
 * @returns whether the operation brings what is there in line.
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
