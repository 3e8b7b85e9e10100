import { isUuid } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** The statements that roles, tags, users and reviewers have in common. */
export type PolicyRows<Row> = {
  /** Lists the rows of an organization, oldest first. */
  list(query: Query, org: string): Promise<Row[]>
  /** Lists the rows after an id, in the order of their ids. */
  page(query: Query, org: string, page: { after: string | null; limit: number }): Promise<Row[]>
  find(query: Query, org: string, id: string): Promise<Row | undefined>
  remove(tx: Transaction, id: string): Promise<void>
}

/** @param columns a select list that gives the fields of `Row`; the table is `p` */
export function policyRows<Row>(
  table: 'org_roles' | 'org_tags' | 'org_users' | 'org_reviewers',
  columns: string,
): PolicyRows<Row> {
  const select = `select ${columns} from ${table} p where p.org = $1`
  const read = async (query: Query, rest: string, values: unknown[], name: string) =>
    (await query<Row & object>(`${select} ${rest}`, values, `${table}.${name}`)).rows
  return {
    list: (query, org) => read(query, 'order by p.created_at, p.id', [org], 'list'),
    page: (query, org, { after, limit }) =>
      read(
        query,
        'and ($2::uuid is null or p.id > $2) order by p.id limit $3',
        [org, after, limit],
        'page',
      ),
    async find(query, org, id) {
      return isUuid(id) ? (await read(query, 'and p.id = $2', [org, id], 'find'))[0] : undefined
    },
    async remove({ query }, id) {
      await query(`delete from ${table} where id = $1`, [id])
    },
  }
}
