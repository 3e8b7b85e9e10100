import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import { findBalance } from '#shared/access/accounts.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** @throws Refusal `unpaid` when the account's balance of tokens is used up; unlimited ones never are. */
export function requireBalance({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (isBalanceExhausted(keyRow.balance)) throw balanceExhausted()
}

/** The same for an account that no Memory Key speaks for. @throws as `requireBalance`. */
export async function requireAccountBalance(query: Query, account: string): Promise<void> {
  if (isBalanceExhausted(await findBalance(query, account))) throw balanceExhausted()
}

const isBalanceExhausted = (balance: number | null): boolean => balance !== null && balance <= 0

const balanceExhausted = (): Refusal =>
  new Refusal(
    'unpaid',
    'The balance of this account is used up',
    'Deleting and exporting still work; top the balance up to go on',
  )

/** Pieces of work that wait for one vault: what keeps one key from filling the queue of everybody. */
const pendingMax = 50_000

/**
 * Whether more work may be promised for a vault; what is read, and what a model call leaves behind, is
 * never refused for this.
 *
 * @throws Refusal `limited` when 50,000 pieces wait already.
 */
export function requireQueueCapacity({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (keyRow.pending < pendingMax) return
  throw new Refusal(
    'limited',
    `${pendingMax} pieces of work of this vault wait to be done`,
    'Try again when some are: GET /v1/operations tells how far they are',
  )
}

/** @throws Refusal `unpaid` when the account has no card on file. */
export function requirePaymentMethod({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (keyRow.paymentMethod !== null) return
  throw new Refusal('unpaid', 'This account has no card on file', 'Add one to upload')
}
