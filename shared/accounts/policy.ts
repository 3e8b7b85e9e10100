import { decideRetention } from '#shared/vault/delete/retention.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import { accountRedaction, putAccountRedaction } from '#shared/accounts/policies.postgres.ts'
import { accountRetention } from '#shared/vault/delete/retentions.postgres.ts'
import { type Policy, undecided, type Asked, decided } from '#shared/privacy/redaction-decision.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** What an account decides for itself alone, too: for how many days it remembers; null: for good. */
export type AccountPolicy = Policy & { retentionDays: number | null }

/** What holds for an account: nothing is looked for, and all is kept, until it decides otherwise. */
export async function policyOfAccount(query: Query, account: string): Promise<AccountPolicy> {
  const redaction = await accountRedaction(query, account)
  const retentionDays = await accountRetention(query, account)
  return redaction
    ? { redaction, from: 'account', retentionDays }
    : { redaction: undecided, from: 'default', retentionDays }
}

export type AccountDecision = {
  /** The UUIDv7 under which a changed retention reaches what is there. */
  operation: string
  redaction: Asked | undefined
  retentionDays: number | null | undefined
}

/**
 * Decides for an account, in what is given; its members' organizations follow in what becomes of private
 * data, unless they decide for themselves.
 *
 * @returns whether the operation brings what is there in line.
 */
export const decideForAccount = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  account: string,
  { operation, redaction, retentionDays: days }: AccountDecision,
): Promise<boolean> =>
  postgres.transaction(async tx => {
    if (redaction) await putAccountRedaction(tx.query, account, decided(redaction))
    if (days === undefined) return false
    return decideRetention({ queue }, tx, { operation, account, days })
  })
