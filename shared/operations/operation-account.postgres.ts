import type { Query } from '#shared/storage/postgres/connect.ts'

/** The account of an operation, for an operator; undefined when there is no such operation. */
export async function findOperationAccount(
  query: Query,
  operation: string,
): Promise<string | undefined> {
  const { rows } = await query<{ account: string }>(
    'select account from operations where id = $1',
    [operation],
  )
  return rows[0]?.account
}
