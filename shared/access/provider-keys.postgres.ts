import type { Query } from '#shared/storage/postgres/connect.ts'

export type ProviderKeyRow = {
  provider: string
  sealed: string
  masked: string
  createdAt: Date
  updatedAt: Date
}

const columns = 'provider, sealed, masked, created_at as "createdAt", updated_at as "updatedAt"'

/** The provider keys of an account, by provider. */
export async function listProviderKeys(query: Query, account: string): Promise<ProviderKeyRow[]> {
  const { rows } = await query<ProviderKeyRow>(
    `select ${columns} from provider_keys where account = $1 order by provider`,
    [account],
    'provider-keys.list',
  )
  return rows
}

/** One sealed key; undefined when there is none. */
export async function findProviderKey(
  query: Query,
  account: string,
  provider: string,
): Promise<string | undefined> {
  const { rows } = await query<{ sealed: string }>(
    'select sealed from provider_keys where account = $1 and provider = $2',
    [account, provider],
    'provider-keys.find',
  )
  return rows[0]?.sealed
}

/** Stores a key; it replaces an earlier one. */
export async function putProviderKey(
  query: Query,
  account: string,
  { provider, sealed, masked }: Pick<ProviderKeyRow, 'provider' | 'sealed' | 'masked'>,
): Promise<ProviderKeyRow> {
  const { rows } = await query<ProviderKeyRow>(
    `insert into provider_keys (account, provider, sealed, masked) values ($1, $2, $3, $4)
     on conflict (account, provider) do update
       set sealed = excluded.sealed, masked = excluded.masked, updated_at = now()
     returning ${columns}`,
    [account, provider, sealed, masked],
  )
  return rows[0]!
}

/** @returns false when there was none. */
export async function deleteProviderKey(
  query: Query,
  account: string,
  provider: string,
): Promise<boolean> {
  const { rowCount } = await query(
    'delete from provider_keys where account = $1 and provider = $2',
    [account, provider],
  )
  return rowCount === 1
}
