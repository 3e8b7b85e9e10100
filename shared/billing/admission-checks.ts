import { refusal } from '#shared/core/refusal.ts'
import type { Caller } from '#shared/access/caller.ts'
import { findBalance } from '#shared/access/accounts.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * @throws Refusal `unpaid` when the account's token balance is used up; an unlimited one never is, and looking is free.
 */
export function requireBalance({ keyRow, inspects }: Pick<Caller, 'keyRow' | 'inspects'>): void {
  if (inspects) return
  if (isBalanceExhausted(keyRow.balance)) throw refusal('unpaid', 'balanceUsedUp')
}

/** Like `requireBalance`, for requests without a Memory Key. @throws as `requireBalance`. */
export async function requireAccountBalance(query: Query, account: string): Promise<void> {
  if (isBalanceExhausted(await findBalance(query, account)))
    throw refusal('unpaid', 'balanceUsedUp')
}

const isBalanceExhausted = (balance: number | null): boolean => balance !== null && balance <= 0

/** Pending operations of one vault: one key must not fill the queue of all tenants. */
const pendingMax = 50_000

/**
 * Requires that more work may be accepted for a vault. Reads, and the storing of model calls, are
 * never refused for this.
 *
 * @throws Refusal `limited` when 50,000 operations are pending.
 */
export function requireQueueCapacity({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (keyRow.pending < pendingMax) return
  throw refusal('limited', 'tooManyPending', { pendingMax })
}

/** @throws Refusal `unpaid` when the account has no card on file. */
export function requirePaymentMethod({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (keyRow.paymentMethod !== null) return
  throw refusal('unpaid', 'noCard')
}
