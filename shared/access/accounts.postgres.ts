import { mintId } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type AccountBilling = { paymentMethod: string | null; balance: number | null }

/** The account of an email; creates it when there is none. An existing account is not changed. */
export async function upsertAccount(
  tx: Pick<Transaction, 'query'>,
  email: string,
  { paymentMethod, balance }: AccountBilling,
): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `insert into accounts (id, email, payment_method, balance) values ($1, $2, $3, $4)
     on conflict (email) do update set email = excluded.email returning id`,
    [mintId(), email, paymentMethod, balance],
  )
  return rows[0]!.id
}

/** @param owner whether keys of this vault act for the account */
export async function insertVault(
  tx: Transaction,
  account: string,
  { owner = false } = {},
): Promise<string> {
  const id = mintId()
  const values = [id, account, owner]
  await tx.query('insert into vaults (id, account, owner) values ($1, $2, $3)', values)
  return id
}

/** Tokens an account has left; null when unlimited. */
export async function findBalance(query: Query, account: string): Promise<number | null> {
  const { rows } = await query<{ balance: string | null }>(
    'select balance from accounts where id = $1',
    [account],
    'accounts.balance',
  )
  const balance = rows[0]?.balance ?? null
  return balance === null ? null : Number(balance)
}

/** Whether any account exists: the first start makes one. */
export async function hasAccounts(query: Query): Promise<boolean> {
  const { rows } = await query('select 1 from accounts limit 1')
  return rows.length > 0
}
