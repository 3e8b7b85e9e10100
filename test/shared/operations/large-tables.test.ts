import t, { type Test } from 'tap'
import { deleteAccountUse } from '#shared/accounts/account-erasures.postgres.ts'
import { mintId } from '#shared/core/ids.ts'
import { eraseSessionNames } from '#shared/vault/delete/erase-texts.postgres.ts'
import { deleteVaultUse, listKeysOfVaults } from '#shared/vault/delete/retired-vaults.postgres.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'
import { watchPlans } from '#test/support/plans.ts'

/* What is about one vault or account takes no longer when the service has many others. */

const backend = await createTestBackend(t)
const { query } = backend.postgres

/** Rows of the vault of a key, as the service writes them: ids and times in one order. */
async function insertUse(key: string, rows: number): Promise<void> {
  const { account, keyHash, scope } = await resolveCaller(backend, key)
  const values = [account, scope.vault, keyHash, rows]
  const id = `(lpad(to_hex(1800000000000 + n), 12, '0') || '70008000' || substr(md5($2::text), 1, 12))::uuid`
  await query(
    `insert into operations (id, account, vault, key_hash, kind, epoch, state, finished_at, session)
     select ${id}, $1::uuid, $2::uuid, $3::bytea, 'ingest', 0, 'done', now(), 'monday'
     from generate_series(1, $4::int) n`,
    values,
  )
  await query(
    `insert into usage_events (id, account, vault, key_hash, kind, session, memory_tokens, at)
     select ${id}, $1::uuid, $2::uuid, $3::bytea, 'ingest', 'monday', 1,
            now() + make_interval(secs => n)
     from generate_series(1, $4::int) n`,
    values,
  )
}

const [others, own] = [await buildKey(backend), await buildKey(backend)]
await insertUse(others, 100_000)
await insertUse(own, 300)
await query('analyze operations, usage_events, memory_keys, vaults')
const { account, scope } = await resolveCaller(backend, own)
const { vault } = scope

const countOf = async (condition: string, values: unknown[]): Promise<number> =>
  (await query<{ n: number }>(`select count(*)::int as n from ${condition}`, values)).rows[0]!.n

/** Runs what is watched in a transaction, and expects that no large table was read from end to end. */
async function expectNoScan(t: Test, work: (tx: { query: typeof query }) => Promise<unknown>) {
  const scans = await backend.postgres.transaction(async tx => {
    const watched = watchPlans(tx.query)
    await work(watched)
    return watched.scans
  })
  const large = new Set(['operations', 'usage_events'])
  t.same(
    scans.filter(({ table }) => large.has(table)),
    [],
  )
}

t.test('the names of sessions go from the bills of a vault', async t => {
  const keys = await backend.postgres.transaction(tx => listKeysOfVaults(tx, [vault]))
  const job = { vault, operation: mintId(), keys: keys.get(vault)! }
  t.equal(job.keys.length, 1)
  await expectNoScan(t, tx => eraseSessionNames(tx.query, job))
  const named = 'usage_events where vault = $1 and session is not null'
  t.equal(await countOf(named, [vault]), 0)
  const { scope: stranger } = await resolveCaller(backend, others)
  t.equal(await countOf(named, [stranger.vault]), 100_000)
  await expectNoScan(t, tx => eraseSessionNames(tx.query, { ...job, vault: stranger.vault }))
  t.equal(await countOf(named, [stranger.vault]), 0, 'a slice at a time')
})

t.test('the use of a vault is deleted', async t => {
  await expectNoScan(t, tx => deleteVaultUse(tx, [vault]))
  t.equal(await countOf('operations where vault = $1', [vault]), 0)
})

t.test('the use of an account is deleted', async t => {
  await expectNoScan(t, tx => deleteAccountUse(tx.query, account))
  t.equal(await countOf('usage_events where account = $1', [account]), 0)
  t.equal(await countOf('usage_events', []), 100_000)
})
