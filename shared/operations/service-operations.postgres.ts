import type { Query } from '#shared/storage/postgres/connect.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

/** An operation of any account, without its content. */
export type ServiceOperation = {
  id: string
  account: string
  email: string
  kind: string
  state: OperationState
  done: number
  total: number
  createdAt: Date
  finishedAt: Date | null
  /** The HTTP status it ended with. */
  status: number | null
}

export type ServiceOperationFilter = {
  state: OperationState | undefined
  kind: string | undefined
  account: string | undefined
  /** Only operations older than this id. */
  before: string | undefined
  limit: number
}

/** No page scans more operations than this: rare ones may be on a later page. */
const scannedMax = 5_000

/**
 * Operations of all accounts, newest first.
 *
 * @returns a page, and the id it reached: null when there is nothing older.
 */
export async function listServiceOperations(
  query: Query,
  { state, kind, account, before, limit }: ServiceOperationFilter,
): Promise<{ rows: ServiceOperation[]; after: string | null }> {
  // Few operations have failed, and a partial index holds them: a statement with a parameter for
  // the state cannot use it.
  const failed = state === 'failed' ? `state = 'failed' and` : ''
  type Row = ServiceOperation & { looked: number; oldest: string }
  const { rows } = await query<Row | (Record<keyof ServiceOperation, null> & Row)>(
    `with looked as (
       select id, account, kind, state, progress_done, progress_total, created_at, finished_at, status
       from operations
       where ${failed} ($1::uuid is null or id < $1) and ($2::uuid is null or account = $2)
       order by id desc limit ${scannedMax}
     ), page as (
       select * from looked
       where ($3::text is null or state = $3) and ($4::text is null or kind = $4)
       order by id desc limit $5
     )
     select p.id, p.account, a.email, p.kind, p.state, p.progress_done as done,
            p.progress_total as total, p.created_at as "createdAt", p.finished_at as "finishedAt",
            p.status, l.n as looked, l.oldest
     from (select count(*)::int as n, (array_agg(id order by id))[1] as oldest from looked) l
     left join (page p join accounts a on a.id = p.account) on true
     order by p.id desc`,
    [before ?? null, account ?? null, state ?? null, kind ?? null, limit],
    state === 'failed' ? 'service-operations.failed' : 'service-operations.list',
  )
  const { looked, oldest } = rows[0]!
  const page = rows
    .filter(({ id }) => id !== null)
    .map(({ looked: _looked, oldest: _oldest, ...row }) => row)
  if (page.length === limit) return { rows: page, after: page.at(-1)!.id }
  return { rows: page, after: looked === scannedMax ? oldest : null }
}
