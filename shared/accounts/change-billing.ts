import {
  findBillingForUpdate,
  updateBilling,
  type AccountTerms,
} from '#shared/access/accounts.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { noSuchAccount } from '#shared/core/refusals.ts'
import {
  recordAccountEvents,
  type NewAccountEvent,
} from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** Most tokens of a balance. */
export const balanceMax = 1_000_000_000_000_000

/** Absent fields stay as they are. */
export type BillingChange = {
  /** Null removes the card. */
  paymentMethod?: string | null | undefined
  /** Tokens left; null: unlimited. Not together with `addBalance`. */
  balance?: number | null | undefined
  /** Tokens added to what is left. */
  addBalance?: number | undefined
  /** Users that it may have; null: as many as the service lets every account have. */
  usersMax?: number | null | undefined
}

/**
 * Changes card, balance and most users of an account and records what changed as events of the account.
 *
 * @param actor who changes it, as the account's events name them
 * @throws Refusal `invalid` for a change of the balance in two ways, or beyond the largest
 *   balance; `missing` for an unknown account or one that is being erased; `conflict` for tokens added
 *   to an unlimited balance.
 */
export async function changeBilling(
  tx: Transaction,
  account: string,
  change: BillingChange,
  actor: string,
): Promise<AccountTerms> {
  requireOneBalance(change)
  const before = await findBillingForUpdate(tx, account)
  if (!before) throw noSuchAccount()
  const { paymentMethod = before.paymentMethod, usersMax = before.usersMax } = change
  const after = { paymentMethod, balance: changedBalance(before.balance, change), usersMax }
  await updateBilling(tx, account, after)
  await recordAccountEvents(
    tx,
    billingEvents({ account, actor, subject: 'account' }, before, after),
  )
  return after
}

function requireOneBalance(change: BillingChange): void {
  const { balance, addBalance } = change
  if (balance !== undefined && addBalance !== undefined) throw refusal('invalid', 'twoBalances')
}

function changedBalance(before: number | null, { balance, addBalance }: BillingChange) {
  if (addBalance === undefined) return balance === undefined ? before : balance
  if (before === null) throw refusal('conflict', 'balanceUnlimited')
  const sum = before + addBalance
  if (sum <= balanceMax) return sum
  throw new Refusal('invalid', `The balance would be more than ${balanceMax} tokens`)
}

function billingEvents(
  common: Pick<NewAccountEvent, 'account' | 'actor' | 'subject'>,
  before: AccountTerms,
  after: AccountTerms,
): NewAccountEvent[] {
  const fields = [
    ['payment_method.changed', 'paymentMethod'],
    ['balance.changed', 'balance'],
    ['users_max.changed', 'usersMax'],
  ] as const
  return fields
    .filter(([, field]) => before[field] !== after[field])
    .map(([action, field]) => ({ ...common, action, change: [before[field], after[field]] }))
}
