import t from 'tap'
import type { Test } from 'tap'
import { deleteAccountUse } from '#shared/accounts/account-erasures.postgres.ts'
import { mintId } from '#shared/core/ids.ts'
import { mintMemoryKey } from '#shared/access/mint.ts'
import { eraseAdminResponses } from '#shared/org/memories/shared-statements.postgres.ts'
import { deleteOrgResponses } from '#shared/org/base/orgs.postgres.ts'
import { insertOperations } from '#shared/operations/operations.postgres.ts'
import { listOperations } from '#shared/operations/operation-rows.postgres.ts'
import { eraseSessionNames } from '#shared/vault/delete/erase-texts.postgres.ts'
import { deleteVaultUse, listKeysOfVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { buildKey } from '#test/support/start/api.ts'
import { readUsage } from '#shared/billing/usage-report.postgres.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { watchPlans } from '#test/support/checks/plans.ts'

/* What is about one vault or account takes no longer when the service has many others. */

const backend = await createTestBackend(t)
const { query } = backend.postgres

const statementRows = 5_000

/** Rows of the vault of a key, or of another vault of its account, as the service writes them: ids and times in one order. */
async function insertUse(key: string, rows: number, vault?: string): Promise<void> {
  const { account, keyHash, scope } = await resolveCaller(backend, key)
  const id = `(lpad(to_hex(1800000000000 + n), 12, '0') || '70008000' || substr(md5($2::text), 1, 12))::uuid`
  const numbers = 'generate_series($4::int, $5::int) n'
  // No statement may take 5 s, on a busy machine either.
  for (let first = 1; first <= rows; first += statementRows) {
    const last = Math.min(rows, first + statementRows - 1)
    const values = [account, vault ?? scope.vault, keyHash, first, last]
    await query(
      `insert into operations (id, account, vault, key_hash, kind, epoch, state, finished_at, session)
       select ${id}, $1::uuid, $2::uuid, $3::bytea, 'ingest', 0, 'done', now(), 'monday'
       from ${numbers}`,
      values,
    )
    await query(
      `insert into usage_events (id, account, vault, key_hash, kind, session, memory_tokens, at)
       select ${id}, $1::uuid, $2::uuid, $3::bytea, 'ingest', 'monday', 1,
              date_trunc('day', now()) + make_interval(days => 1, secs => n)
       from ${numbers}`,
      values,
    )
  }
}

const [others, own] = [await buildKey(backend), await buildKey(backend)]
await insertUse(others, 50_000)
await insertUse(own, 300)
const stranger = await resolveCaller(backend, others)
const user = await backend.postgres.transaction(tx =>
  mintMemoryKey(tx, backend.config.keyPepper, { account: stranger.account, actor: '', name: '' }),
)
await insertUse(others, 40, user.vault)
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
  const read = scans.filter(({ table }) => large.has(table))
  t.same(read, [])
}

const everything = { state: undefined, kind: undefined, before: undefined, limit: 50 }

t.test('the operations of one vault of a busy account are listed by its own index', async t => {
  const scope = { account: stranger.account, vault: user.vault }
  const watched = watchPlans(query)
  const { rows, after } = await listOperations(watched.query, scope, everything)
  t.equal(rows.length, 40)
  t.equal(after, null)
  t.ok(watched.indexes.has('operations_of_vault'), [...watched.indexes].join(', '))
  t.notOk(watched.indexes.has('operations_of_account'))
})

t.test('a rare operation of a busy account is found after pages that look at some', async t => {
  const scope = { account: stranger.account, vault: null }
  const { rows: oldest } = await query<{ id: string }>(
    `update operations set state = 'failed' where id =
       (select id from operations where vault = $1 order by id limit 1) returning id`,
    [stranger.scope.vault],
  )
  const found: string[] = []
  let pages = 0
  for (let before: string | null | undefined; before !== null; pages++) {
    const filter = { ...everything, state: 'failed' as const, before }
    const page = await listOperations(query, scope, filter)
    found.push(...page.rows.map(({ id }) => id))
    before = page.after
  }
  t.same(found, [oldest[0]!.id])
  t.equal(pages, 6)
  const first = await listOperations(query, scope, everything)
  t.equal(first.rows.length, 50)
  t.equal(first.after, first.rows.at(-1)!.id)
})

t.test('the usage of an account is read by its own keys, by session too', async t => {
  const end = new Date(Date.now() + 2 * 86_400_000)
  const filter = { start: new Date(Date.now() - 86_400_000), end }
  const all = { key: undefined, user: undefined, model: undefined }
  const first = { after: undefined, limit: 50 }
  for (const group of ['model', 'session'] as const) {
    const watched = watchPlans(query)
    const { total } = await readUsage(watched.query, account, [group], { ...filter, ...all }, first)
    t.equal(total.requests, 300)
    t.ok(watched.indexes.has('usage_events_of_key'))
    t.notOk(watched.indexes.has('usage_events_by_time'), [...watched.indexes].join(', '))
  }
})

t.test('the names of sessions go from the bills of a vault', async t => {
  const keys = await backend.postgres.transaction(tx => listKeysOfVaults(tx, [vault]))
  const job = { vault, operation: mintId(), keys: keys.get(vault)! }
  t.equal(job.keys.length, 1)
  await expectNoScan(t, tx => eraseSessionNames(tx.query, job))
  const named = 'usage_events where vault = $1 and session is not null'
  t.equal(await countOf(named, [vault]), 0)
  const { vault: large } = stranger.scope
  t.equal(await countOf(named, [large]), 50_000)
  await expectNoScan(t, tx => eraseSessionNames(tx.query, { ...job, vault: large }))
  t.equal(await countOf(named, [large]), 0, 'a slice at a time')
})

t.test('the use of a vault is deleted', async t => {
  await expectNoScan(t, tx => deleteVaultUse(tx, [vault]))
  t.equal(await countOf('operations where vault = $1', [vault]), 0)
})

t.test('the use of an account is deleted', async t => {
  await expectNoScan(t, tx => deleteAccountUse(tx.query, account))
  t.equal(await countOf('usage_events where account = $1', [account]), 0)
  t.equal(await countOf('usage_events', []), 50_040)
})

t.test('words of an organization are erased from stored responses by an index', async t => {
  await query(
    `insert into idempotency (key_hash, route, idempotency, body_hash, operation, locked_until, answer)
     select '\\x00', 'POST /v1/memory/search', n::text, '\\x00', gen_random_uuid(), now(), 'sealed'
     from generate_series(1, 10000) n`,
  )
  await query('analyze idempotency')
  const scans = await backend.postgres.transaction(async tx => {
    const watched = watchPlans(tx.query)
    await eraseAdminResponses(watched, mintId(), mintId())
    await deleteOrgResponses(watched, mintId())
    return watched.scans
  })
  const read = scans.filter(({ table }) => table === 'idempotency')
  t.same(read, [])
})

t.test('accepting work looks up its own session among those of other vaults', async t => {
  const caller = await resolveCaller(backend, await buildKey(backend))
  await query(
    `with added as (
       insert into vaults (id, account, external_id)
       select gen_random_uuid(), $1, 'user-' || n from generate_series(1, 4000) n returning id
     )
     insert into sessions (vault, session, epoch) select id, 'monday', 1 from added`,
    [caller.account],
  )
  await query(`insert into sessions (vault, session, epoch) values ($1, 'monday', 7)`, [
    caller.scope.vault,
  ])
  await query('analyze vaults, sessions')
  const operation = (session: string) => ({
    id: mintId(),
    account: caller.account,
    vault: caller.scope.vault,
    keyHash: caller.keyHash,
    kind: 'ingest' as const,
    billing: 'never' as const,
    awaited: false,
    session,
  })
  const { accepted, scans } = await backend.postgres.transaction(async tx => {
    const watched = watchPlans(tx.query)
    const accepted = await insertOperations(watched, [operation('monday'), operation('tuesday')])
    return { accepted, scans: watched.scans }
  })
  const epochs = accepted.map(({ sessionEpoch }) => sessionEpoch)
  t.same(epochs, [7, 0])
  t.notOk(scans.some(({ table }) => table === 'sessions'))
})

/** Their rows go within days: the tables stay small. */
const shortLived = ['tombstone_days', 'open_exchanges']

t.test('a vault or account is deleted by an index of each table that refers to it', async t => {
  const { rows } = await query<{ place: string }>(
    `select c.conrelid::regclass || '.' || a.attname as place
     from pg_constraint c
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
     where c.contype = 'f' and c.confrelid in ('vaults'::regclass, 'accounts'::regclass)
       and not c.conrelid::regclass::text = any($1)
       and not exists (
         select from pg_index i where i.indrelid = c.conrelid and i.indkey[0] = c.conkey[1]
           and (i.indpred is null
                or pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname)))
     order by 1`,
    [shortLived],
  )
  t.same(
    rows.map(({ place }) => place),
    [],
  )
})
