import type { StoredOutcome } from '#shared/domain/operation-outcome.ts'
import { visibleToAccountSql } from '#shared/operations/account-vaults.postgres.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type OperationRow = {
  id: string
  kind: string
  state: OperationState
  /** The key of the request, masked. */
  key: string
  session: string | null
  done: number
  total: number
  createdAt: Date
  finishedAt: Date | null
  outcome: StoredOutcome | null
}

const columns = `o.id, o.kind, o.state, coalesce(k.masked, '') as key, o.session,
  o.progress_done as done, o.progress_total as total, o.created_at as "createdAt",
  o.finished_at as "finishedAt",
  case when o.status is not null then jsonb_build_object('status', o.status, 'value', o.outcome) end
    as outcome`

/** Which operations of an account are visible. */
export type OperationScope = {
  account: string
  /** Only those of this vault; null for all of the account itself, without its members'. */
  vault: string | null
}

const visibleCondition = `(o.vault = $2 or $2::uuid is null and ${visibleToAccountSql('o.vault')})`

/** One visible operation, or undefined. */
export async function findVisibleOperation(
  query: Query,
  { account, vault }: OperationScope,
  id: string,
): Promise<OperationRow | undefined> {
  const { rows } = await query<OperationRow>(
    `select ${columns} from operations o left join memory_keys k on k.hash = o.key_hash
     where o.account = $1 and ${visibleCondition} and o.id = $3`,
    [account, vault, id],
    'operations.find-seen',
  )
  return rows[0]
}

/** One operation of an account, or undefined. */
export async function findOperation(
  query: Query,
  account: string,
  id: string,
): Promise<OperationRow | undefined> {
  const { rows } = await query<OperationRow>(
    `select ${columns} from operations o left join memory_keys k on k.hash = o.key_hash
     where o.account = $1 and o.id = $2`,
    [account, id],
    'operations.find',
  )
  return rows[0]
}

export type OperationFilter = {
  /** `open`: not finished, or failed. */
  state: OperationState | 'open' | undefined
  kind: string | undefined
  /** Only operations older than this id. */
  before: string | undefined
  limit: number
}

/** A page, and the id it reached: null when there is nothing older. */
type OperationPage<Row> = { rows: Row[]; after: string | null }

/** No page scans more operations than this: rare ones may be on a later page. */
const scannedMax = 10_000

/** After every id. */
const uuidMax = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** SQL of a row with how many operations `scanned` has, and the oldest of them. */
const scanSql = `(select count(*) as scanned, (array_agg(id order by id))[1] as oldest from scanned) s`

/** The states of `open`, in the terms of the partial indexes. */
const openSql = `(state = 'failed' or state in ('accepted', 'running'))`

/** Visible operations, newest first. */
export async function listOperations(
  query: Query,
  { account, vault }: OperationScope,
  { state, kind, before, limit }: OperationFilter,
): Promise<OperationPage<OperationRow>> {
  // A statement for each: one with a vault that may be null would walk the operations of the account.
  const ofVault = vault === null ? '' : 'and o.vault = $2'
  const { rows } = await query<Scanned<OperationRow>>(
    `with scanned as (
       select o.id, o.vault, o.state, o.kind from operations o
       where o.account = $1 ${ofVault} and o.id < $5::uuid order by o.id desc limit ${scannedMax}
     ), page as (
       select o.id from scanned o
       where ${visibleCondition}
         and ($3::text is null or o.state = $3 or $3 = 'open' and ${openSql})
         and ($4::text is null or o.kind = $4)
       order by o.id desc limit $6
     )
     select ${columns}, s.scanned, s.oldest
     from ${scanSql}
     left join (page p join operations o on o.id = p.id
                left join memory_keys k on k.hash = o.key_hash) on true
     order by o.id desc`,
    [account, vault, state ?? null, kind ?? null, before ?? uuidMax, limit + 1],
    vault === null ? 'operations.list-of-account' : 'operations.list-of-vault',
  )
  return toPage(rows, limit, scannedMax)
}

type Scanned<Row> = Row & { scanned: number; oldest: string }

/** @param rows one more than `limit` where the page is not the last; without a match one row of nulls */
function toPage<Row extends { id: string }>(
  rows: Scanned<Row>[],
  limit: number,
  max: number,
): OperationPage<Row> {
  const { scanned, oldest } = rows[0]!
  const found = rows.filter(({ id }) => (id as string | null) !== null)
  const page = found.slice(0, limit)
  if (found.length > limit) return { rows: page, after: page.at(-1)!.id }
  return { rows: page, after: scanned === max ? oldest : null }
}

/** An operation of any account, without its content. */
export type ServiceOperation = Omit<OperationRow, 'key' | 'session' | 'outcome'> & {
  account: string
  email: string
  /** The HTTP status it ended with. */
  status: number | null
  /** Why it failed; null too where what was sent is at fault, since its words may be in it. */
  error: string | null
}

const serviceScannedMax = 5_000

/** Operations of all accounts, newest first. */
export async function listServiceOperations(
  query: Query,
  { state, kind, account, before, limit }: OperationFilter & { account: string | undefined },
): Promise<OperationPage<ServiceOperation>> {
  // Few operations have failed or are under way, and partial indexes hold them: a statement with a
  // parameter for the state cannot use these.
  const wanted = state === 'failed' ? `state = 'failed'` : state === 'open' ? openSql : 'true'
  const { rows } = await query<Scanned<ServiceOperation>>(
    `with scanned as (
       select id, account, kind, state, progress_done, progress_total, created_at, finished_at, status,
              case when state = 'failed' and outcome ->> 'reason' in ('upstream', 'unavailable', 'unexpected')
                   then outcome ->> 'error' end as error
       from operations
       where ${wanted} and ($1::uuid is null or id < $1) and ($2::uuid is null or account = $2)
       order by id desc limit ${serviceScannedMax}
     ), page as (
       select * from scanned
       where ($3::text is null or $3 in ('open', state)) and ($4::text is null or kind = $4)
       order by id desc limit $5
     )
     select p.id, p.account, a.email, p.kind, p.state, p.progress_done as done,
            p.progress_total as total, p.created_at as "createdAt", p.finished_at as "finishedAt",
            p.status, p.error, s.scanned, s.oldest
     from ${scanSql} left join (page p join accounts a on a.id = p.account) on true
     order by p.id desc`,
    [before ?? null, account ?? null, state ?? null, kind ?? null, limit + 1],
    `service-operations.${wanted === 'true' ? 'list' : state}`,
  )
  return toPage(rows, limit, serviceScannedMax)
}

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

/** Counts the operations of all accounts that have not ended, by state. */
export async function countUnfinishedOperations(
  query: Query,
): Promise<{ state: string; count: number }[]> {
  const { rows } = await query<{ state: string; count: number }>(
    `select state, count(*) as count from operations
     where state in ('accepted', 'running') group by state order by state`,
  )
  return rows
}
