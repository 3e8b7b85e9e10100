import type { Query } from '#shared/storage/postgres/connect.ts'

/** Counts the operations of all accounts that have not ended, by state. */
export async function countUnfinishedOperations(
  query: Query,
): Promise<{ state: string; count: number }[]> {
  const { rows } = await query<{ state: string; count: number }>(
    `select state, count(*)::int as count from operations
     where state in ('accepted', 'running') group by state order by state`,
  )
  return rows
}
