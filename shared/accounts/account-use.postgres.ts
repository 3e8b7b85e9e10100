import { deleteDeliveries } from '#shared/events/webhooks/webhooks.postgres.ts'
import { usageSlices } from '#shared/billing/usage-sums.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

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
