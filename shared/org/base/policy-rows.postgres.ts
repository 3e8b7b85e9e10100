import { isUuid } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** The statements that roles, tags, users and reviewers have in common. */
export type PolicyRows<Row> = {
  /** Lists the rows of an organization, oldest first. */
  list(query: Query, org: string): Promise<Row[]>
  /** Lists the rows after an id, in the order of their ids. */
  page(query: Query, org: string, page: { after: string | null; limit: number }): Promise<Row[]>
  find(query: Query, org: string, id: string): Promise<Row | undefined>
  /** A page of the rows of which all conditions hold, oldest first, and how many there are. */
  search(
    query: Query,
    org: string,
    conditions: readonly (readonly [sql: string, value: string])[],
    page: { offset: number; limit: number },
  ): Promise<{ total: number; rows: Row[] }>
  remove(tx: Transaction, id: string): Promise<void>
}

/**
 * @param columns a select list that gives the fields of `Row`; the table is `p`
 * @param label of its statements, where several lists of columns are read of a table
 */
export function policyRows<Row>(
  table:
    | 'org_roles'
    | 'org_tags'
    | 'org_users'
    | 'org_reviewers'
    | 'org_groups'
    | 'org_scim_tokens',
  columns: string,
  label: string = table,
): PolicyRows<Row> {
  const select = `select ${columns} from ${table} p where p.org = $1`
  const read = async (query: Query, rest: string, values: unknown[], name: string) =>
    (await query<Row & object>(`${select} ${rest}`, values, `${label}.${name}`)).rows
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
    async search(query, org, conditions, { offset, limit }) {
      const wanted = conditions
        .map(([sql], n) => `and ${sql.replaceAll('$', () => `$${n + 2}`)}`)
        .join(' ')
      const values = [org, ...conditions.map(([, value]) => value)]
      const { rows } = await query<{ total: number }>(
        `select count(*)::int as total from ${table} p where p.org = $1 ${wanted}`,
        values,
      )
      const page = `order by p.created_at, p.id offset ${offset} limit ${limit}`
      return {
        total: rows[0]!.total,
        rows: (await query<Row & object>(`${select} ${wanted} ${page}`, values)).rows,
      }
    },
    async remove({ query }, id) {
      await query(`delete from ${table} where id = $1`, [id])
    },
  }
}
