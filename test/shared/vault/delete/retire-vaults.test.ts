import t from 'tap'
import { eraseAccount } from '#shared/accounts/erase-account.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

// Without workers: what is accepted stays.
const backend = await createTestBackend(t)
const { query } = backend.postgres

const users = 2_100
const email = 'many@example.com'
const { account, keyHash } = await resolveCaller(backend, await buildKey(backend, email))
await query(
  `insert into vaults (id, account, external_id)
   select gen_random_uuid(), $1, 'user-' || n from generate_series(1, $2::int) n`,
  [account, users],
)
await query(
  `insert into operations (id, account, vault, key_hash, kind, epoch, state, finished_at)
   select gen_random_uuid(), account, id, $2, 'ingest', 0, 'done', now()
   from vaults where account = $1`,
  [account, keyHash],
)

/** The postgres of the backend, with a look at each statement of its transactions. */
const watched = (look: (name: string, values: readonly unknown[]) => void): Postgres => ({
  ...backend.postgres,
  transaction: work =>
    backend.postgres.transaction(tx => {
      const query: Query = (text, values = [], name = text) => {
        look(name, values)
        return tx.query(text, values, name === text ? undefined : name)
      }
      return work({ query, commit() {} })
    }),
})

/** How many vaults, operations or jobs a statement is given. */
const lengthOf = (value: unknown): number => {
  if (Array.isArray(value)) return value.length
  return typeof value === 'string' && value.startsWith('[') ? JSON.parse(value).length : 1
}

async function readCounts() {
  const { rows } = await query(
    `select (select count(*)::int from operations where account = $1) as operations,
            (select count(*)::int from operations where account = $1 and kind = 'clear') as clearings,
            (select count(distinct vault)::int from operations
             where account = $1 and kind = 'clear') as cleared,
            (select count(*)::int from pgboss.job where name = 'clear') as jobs,
            (select count(*)::int from erasures e join vaults v on v.id = e.vault
             where v.account = $1) as erasures`,
    [account],
  )
  return rows[0]
}

const vaults = users + 1
const untouched = { operations: vaults, clearings: 0, cleared: 0, jobs: 0, erasures: 0 }

t.test('an erasure that ends halfway has done nothing', async t => {
  let inserts = 0
  const postgres = watched(name => {
    if (name === 'operations.insert' && ++inserts === 2) throw new Error('the process ends')
  })
  const request = { id: mintId(), email }
  const erasure = eraseAccount({ ...backend, postgres }, { account, keyHash }, request)
  await t.rejects(erasure, { message: 'the process ends' })
  t.same(await readCounts(), untouched)
})

t.test('an account with many vaults is erased by statements of 1,000', async t => {
  const longest = new Map<string, number>()
  const postgres = watched((name, values) =>
    longest.set(name, Math.max(longest.get(name) ?? 0, ...values.map(lengthOf))),
  )
  const request = { id: mintId(), email }
  await eraseAccount({ ...backend, postgres }, { account, keyHash }, request)
  const lists = /^(vaults\.lock-all|insert into account_erasures)/
  const long = [...longest].filter(([name, length]) => length > 1_000 && !lists.test(name))
  t.same(long, [])
  t.equal(longest.get('operations.insert'), 1_000)
  t.same(await readCounts(), {
    operations: vaults,
    clearings: vaults,
    cleared: vaults,
    jobs: vaults,
    erasures: vaults,
  })
})
