import type { StoragePolicy, StoragePolicyChange } from '#shared/domain/storage-policy.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What an account decides about the storing of exchanges. */
export async function findStoragePolicy(query: Query, account: string): Promise<StoragePolicy> {
  const { rows } = await query<StoragePolicy>(
    `select verbatim, response_with_input as "responseWithInput" from accounts where id = $1`,
    [account],
    'accounts.storage-policy',
  )
  return rows[0] ?? { verbatim: false, responseWithInput: false }
}

/** Changes what is given, from the next request on. @returns whether anything changed. */
export async function putStoragePolicy(
  query: Query,
  account: string,
  { verbatim, responseWithInput }: StoragePolicyChange,
): Promise<boolean> {
  const { rowCount } = await query(
    `update accounts set verbatim = coalesce($2, verbatim),
       response_with_input = coalesce($3, response_with_input)
     where id = $1 and (verbatim <> coalesce($2, verbatim)
       or response_with_input <> coalesce($3, response_with_input))`,
    [account, verbatim ?? null, responseWithInput ?? null],
    'accounts.put-storage-policy',
  )
  return rowCount === 1
}
