import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type AccountBilling = { paymentMethod: string | null; balance: number | null }

/** The billing of an account that comes to be by itself: it may upload, and nothing is counted down. */
export const newAccountBilling: AccountBilling = { paymentMethod: 'self-hosted', balance: null }

/** What the operator sets of an account; users: null for the number of the service. */
export type AccountTerms = AccountBilling & { usersMax: number | null }

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

/**
 * Creates a vault, and locks its account against erasure until the transaction ends.
 *
 * @param owner whether keys of this vault act for the account
 * @throws Refusal `conflict` when the account is being erased: a key of the vault would outlive it
 */
export async function insertVault(
  { query }: Transaction,
  account: string,
  { owner = false } = {},
): Promise<string> {
  const id = mintId()
  // Two statements that travel together: the second sees what an erasure wrote that the first waited for.
  const [, { rowCount }] = await Promise.all([
    query('select from accounts where id = $1 for key share', [account], 'accounts.hold'),
    query(
      `insert into vaults (id, account, owner) select $1, $2, $3
       where not exists (select from account_erasures gone where gone.account = $2)`,
      [id, account, owner],
      'vaults.insert',
    ),
  ])
  if (rowCount === 1) return id
  throw new Refusal('conflict', 'This account is being erased', 'Its keys are refused from now on')
}

/**
 * Creates the vault of a user.
 *
 * @param externalId as `parseExternalId` returns it
 * @returns undefined when the account has a vault of that id, or is being erased.
 */
export async function insertUserVault(
  { query }: Transaction,
  account: string,
  externalId: string,
): Promise<string | undefined> {
  const { rows } = await query<{ id: string }>(
    `insert into vaults (id, account, external_id) select $1, $2, $3
     where not exists (select from account_erasures gone where gone.account = $2)
     on conflict (account, external_id) where external_id is not null do nothing returning id`,
    [mintId(), account, externalId],
    'vaults.insert-of-user',
  )
  return rows[0]?.id
}

/**
 * Locks an account against its erasure until the transaction ends.
 *
 * @returns whether requests may create users; undefined when there is no such account.
 */
export async function lockUserPolicy(
  { query }: Transaction,
  account: string,
): Promise<boolean | undefined> {
  const { rows } = await query<{ createUsers: boolean }>(
    'select create_users as "createUsers" from accounts where id = $1 for key share',
    [account],
    'accounts.user-policy',
  )
  return rows[0]?.createUsers
}

/**
 * Users that an account has, and may have.
 *
 * @param usersMaxOfService for an account without a number of its own
 */
export async function countUsers(
  query: Query,
  account: string,
  usersMaxOfService: number,
): Promise<{ users: number; usersMax: number }> {
  const { rows } = await query<{ users: number; usersMax: number }>(
    `select coalesce(a.users_max, $2) as "usersMax",
            (select count(*) from vaults v
             where v.account = a.id and v.external_id is not null) as users
     from accounts a where a.id = $1`,
    [account, usersMaxOfService],
    'accounts.count-users',
  )
  return rows[0]!
}

/** Tokens an account has left; null when unlimited. */
export async function findBalance(query: Query, account: string): Promise<number | null> {
  const { rows } = await query<Pick<AccountBilling, 'balance'>>(
    'select balance from accounts where id = $1',
    [account],
    'accounts.balance',
  )
  return rows[0]?.balance ?? null
}

/** Whether any account exists: the first start makes one. */
export async function hasAccounts(query: Query): Promise<boolean> {
  const { rows } = await query('select 1 from accounts limit 1')
  return rows.length > 0
}

/** The account of an email; undefined when there is none. */
export async function findAccountByEmail(query: Query, email: string): Promise<string | undefined> {
  const { rows } = await query<{ id: string }>('select id from accounts where email = $1', [email])
  return rows[0]?.id
}

/** Card and balance of an account, locked; undefined when it does not exist or is being erased. */
export async function findBillingForUpdate(
  { query }: Transaction,
  account: string,
): Promise<AccountTerms | undefined> {
  const { rows } = await query<AccountTerms>(
    `select payment_method as "paymentMethod", balance, users_max as "usersMax" from accounts
     where id = $1 and not exists (select from account_erasures gone where gone.account = $1)
     for no key update`,
    [account],
    'accounts.lock-billing',
  )
  return rows[0]
}

export async function updateBilling(
  { query }: Transaction,
  account: string,
  { paymentMethod, balance, usersMax }: AccountTerms,
): Promise<void> {
  await query(
    'update accounts set payment_method = $2, balance = $3, users_max = $4 where id = $1',
    [account, paymentMethod, balance, usersMax],
    'accounts.update-billing',
  )
}
