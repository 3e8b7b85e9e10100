import { Refusal } from '#shared/errors.ts'
import type { Caller } from '#shared/key/caller.ts'

/** @throws Refusal `unpaid` when the account's balance of tokens is used up; unlimited ones never are. */
export function requireBalance({ row }: Pick<Caller, 'row'>): void {
  if (row.balance === null || row.balance > 0) return
  throw new Refusal(
    'unpaid',
    'The balance of this account is used up',
    'Deleting and exporting still work; top the balance up to go on',
  )
}

/** @throws Refusal `unpaid` when the account has no card on file. */
export function requirePaymentMethod({ row }: Pick<Caller, 'row'>): void {
  if (row.paymentMethod !== null) return
  throw new Refusal('unpaid', 'This account has no card on file', 'Add one to upload')
}
