import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** Whether an earlier attempt of this request has removed its object. */
export async function isRemovalRecorded(query: Query, operation: string): Promise<boolean> {
  const { rows } = await query('select 1 from policy_removals where operation = $1', [operation])
  return rows.length > 0
}

/** Records for a day that a request has removed its object. */
export async function recordRemoval(
  { query }: Transaction,
  { operation, org }: { operation: string; org: string },
): Promise<void> {
  await query('insert into policy_removals (operation, org) values ($1, $2)', [operation, org])
}
