import { budgetKeysSql } from '#shared/access/rate-limit/rate-limit-store.postgres.ts'
import { deleteDeliveries, switchOffWebhooks } from '#shared/events/webhooks/webhooks.postgres.ts'
import { usageSlices } from '#shared/billing/usage-sums.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { organizationRouteSql } from '#shared/operations/idempotency.postgres.ts'
import { lockManyVaults } from '#shared/operations/vault-locks.postgres.ts'

/** Rows about the use of an account's vaults, as `delete` conditions. */
const accountUseTables = [
  'account_events where account = $1',
  'account_event_heads where account = $1',
  'open_exchanges where account = $1',
  // Those that the account asked for go with their operations.
  `long_operations where vault in ${accountVaultsSql()}`,
  `leases where vault in ${accountVaultsSql()}`,
  `vault_changes where vault in ${accountVaultsSql()}`,
  `sessions where vault in ${accountVaultsSql()}`,
  `shared_tag_sets where vault in ${accountVaultsSql()}`,
  `tombstone_days where vault in ${accountVaultsSql()}`,
  'operations where account = $1',
]

function accountVaultsSql(): string {
  return '(select id from vaults where account = $1)'
}

const rowsMax = 10_000

/**
 * Deletes the webhooks of an account, and the rows about its use, 10,000 in one statement.
 *
 * @returns how many of the latter.
 */
export async function deleteAccountUse(query: Query, account: string): Promise<number> {
  await deleteDeliveries(query, { account })
  await query('delete from webhooks where account = $1', [account])
  let gone = 0
  for (const what of accountUseTables) {
    const table = what.slice(0, what.indexOf(' '))
    for (let removed = rowsMax; removed === rowsMax; gone += removed) {
      ;({ rowCount: removed } = await query(
        `delete from ${table} where ctid = any(array(select ctid from ${what} limit ${rowsMax}))`,
        [account],
      ))
    }
  }
  return gone + (await deleteUsageEvents(query, account))
}

/**
 * The keys of the account are gone, those of former members too: its events are found in those of its time,
 * and the keys whose days were summed in its events.
 */
async function deleteUsageEvents(query: Query, account: string): Promise<number> {
  const { rows } = await query<{ after: string }>(
    `select (created_at - interval '1 day')::text as after from accounts where id = $1`,
    [account],
  )
  let gone = 0
  for await (const slice of usageSlices(query, { after: rows[0]?.after ?? '-infinity' })) {
    const { rowCount } = await query(
      `with summed as (
         delete from usage_daily where key_hash in (
           select key_hash from usage_events
           where at > $2::timestamptz and at <= $3::timestamptz and account = $1)
       )
       delete from usage_events
       where at > $2::timestamptz and at <= $3::timestamptz and account = $1`,
      [account, slice.after, slice.upTo],
    )
    gone += rowCount
  }
  return gone
}

/** How many rows the erasure of an account has deleted at once. */
export type ErasedCounts = {
  keys: number
  admin_keys: number
  provider_keys: number
  webhooks: number
  organizations: number
  members: number
  vaults: number
}

export type AccountErasureRow = {
  id: string
  account: string
  proof: string
  vaults: string[]
  counts: ErasedCounts
  requestedAt: Date
  finishedAt: Date | null
  receipt: string | null
}

const columns = `id, account, proof, vaults, counts, requested_at as "requestedAt",
  finished_at as "finishedAt", receipt`

/** One erasure, or undefined. */
export async function findAccountErasure(
  query: Query,
  id: string,
): Promise<AccountErasureRow | undefined> {
  const { rows } = await query<AccountErasureRow>(
    `select ${columns} from account_erasures where id = $1`,
    [id],
  )
  return rows[0]
}

/**
 * Locks an account, after its vaults: work that is accepted or finalized locks its vault first. No vault is
 * added to a locked account.
 *
 * @returns its email and vaults; undefined when there is none, or it is being erased.
 */
export async function lockAccount(
  tx: Transaction,
  account: string,
): Promise<{ email: string; vaults: string[] } | undefined> {
  const early = await listVaults(tx, account)
  await lockManyVaults(tx, early)
  const { rows } = await tx.query<{ email: string }>(
    'select email from accounts where id = $1 for update',
    [account],
  )
  // A statement of its own: it sees the vault of a key that was minted while this one waited.
  const vaults = await listVaults(tx, account)
  const locked = new Set(early)
  await lockManyVaults(
    tx,
    vaults.filter(vault => !locked.has(vault)),
  )
  const { rowCount: erasures } = await tx.query(
    'select from account_erasures where account = $1 limit 1',
    [account],
  )
  const email = rows[0]?.email
  return email === undefined || erasures > 0 ? undefined : { email, vaults }
}

async function listVaults({ query }: Transaction, account: string): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    'select id from vaults where account = $1 order by id',
    [account],
  )
  return rows.map(({ id }) => id)
}

/**
 * Deletes the keys, credentials and organizations of an account, and switches its webhooks off.
 * `deleteAccountUse` deletes the webhooks with their logs. A row without an email stays: the vaults belong to it
 * until they are erased. No account events are recorded, since they would be erased with the account; the receipt
 * counts the deleted rows.
 *
 * @returns how many rows of each were deleted.
 */
export async function anonymizeAccount(
  { query }: Transaction,
  account: string,
): Promise<Omit<ErasedCounts, 'vaults'>> {
  const count = async (text: string): Promise<number> => (await query(text, [account])).rowCount
  const email = '(select email from accounts where id = $1)'
  await query(
    `delete from idempotency where key_hash in (
       select hash from memory_keys where account = $1
       union all select hash from admin_keys where email = ${email})`,
    [account],
  )
  await query(
    `delete from idempotency i using orgs o
     where o.account = $1 and ${organizationRouteSql('o.id')}`,
    [account],
  )
  await query('delete from usage_accounts where account = $1', [account])
  await query(`delete from budget_points where key in (${budgetKeysSql('account = $1')})`, [
    account,
  ])
  const webhooks = await switchOffWebhooks(query, { account })
  // Before the members: the cascade of their rows would delete keys that are not counted.
  const keys = await count('delete from memory_keys where account = $1')
  const members = await count(
    'delete from org_users u using orgs o where o.id = u.org and o.account = $1',
  )
  const organizations = await count('delete from orgs where account = $1')
  const provider = await count('delete from provider_keys where account = $1')
  const admins = await count(`delete from admin_keys where email = ${email}`)
  await query(
    `update accounts set email = 'erased-' || id, payment_method = null, balance = 0, redaction = null,
            retention_days = null
     where id = $1`,
    [account],
  )
  return { keys, admin_keys: admins, provider_keys: provider, webhooks, organizations, members }
}

/** Inserts the row that stays of an erased account. */
export async function insertAccountErasure(
  { query }: Transaction,
  {
    id,
    account,
    proof,
    vaults,
    counts,
  }: Omit<AccountErasureRow, 'requestedAt' | 'finishedAt' | 'receipt'>,
): Promise<void> {
  await query(
    `insert into account_erasures (id, account, proof, vaults, counts) values ($1, $2, $3, $4, $5)`,
    [id, account, proof, vaults, JSON.stringify(counts)],
  )
}

/**
 * Whether it is recorded that an account was erased, or an organization deleted: their events are gone with
 * them. That an organization was erased with its account is recorded for the account alone.
 */
export async function isErasureRecorded(
  query: Query,
  subject: { org: string } | { account: string },
): Promise<boolean> {
  const { rowCount } =
    'org' in subject
      ? await query(
          `select from account_events where action = 'organization.deleted' and subject = $1 limit 1`,
          [subject.org],
        )
      : await query('select from account_erasures where account = $1 limit 1', [subject.account])
  return rowCount > 0
}

/** How far the erasure of an account's vaults is: open operations, and memories deleted so far. */
export async function readErasureProgress(
  query: Query,
  account: string,
): Promise<{ open: number; memories: number }> {
  const { rows } = await query<{ open: number; memories: number }>(
    `select count(*) filter (where state in ('accepted', 'running')) as open,
            coalesce(sum((outcome ->> 'deleted')::bigint) filter (where kind = 'clear'), 0)::bigint
              as memories
     from operations where account = $1`,
    [account],
  )
  return rows[0]!
}

/** Stores the receipt of an erasure, unless it has one. */
export async function saveErasureReceipt(
  query: Query,
  id: string,
  { finishedAt, receipt }: { finishedAt: Date; receipt: string },
): Promise<void> {
  await query(
    `update account_erasures set finished_at = $2, receipt = $3
     where id = $1 and finished_at is null`,
    [id, finishedAt, receipt],
  )
}

const purgedMax = 20

/** Vaults in one statement: what refers to them is deleted or looked up row by row. */
const purgedVaultsMax = 1_000

async function deleteVaults(query: Query, account: string): Promise<void> {
  for (let removed = purgedVaultsMax; removed === purgedVaultsMax;) {
    ;({ rowCount: removed } = await query(
      `delete from vaults
       where id = any(array(select id from vaults where account = $1 limit ${purgedVaultsMax}))`,
      [account],
    ))
  }
}

/**
 * Deletes the remaining ids of accounts that were erased 400 days ago: nothing sweeps their vaults any more.
 *
 * @returns how many accounts.
 */
export async function purgeErasedAccounts(query: Query): Promise<number> {
  const { rows } = await query<{ id: string; account: string }>(
    `select e.id, e.account from account_erasures e
     where e.purged_at is null and e.finished_at is not null
       and not exists (select from erasures x where x.vault = any(e.vaults))
     order by e.finished_at limit $1`,
    [purgedMax],
  )
  for (const { id, account } of rows) {
    await deleteAccountUse(query, account)
    await deleteVaults(query, account)
    await query('delete from accounts where id = $1', [account])
    await query(`update account_erasures set purged_at = now(), vaults = '{}' where id = $1`, [id])
  }
  return rows.length
}
