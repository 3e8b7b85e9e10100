import t, { type Test } from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { holdRow, untilWaiting, holdAccountEvents } from '#test/support/checks/held-rows.ts'
import { accountIdOf, countRows } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

/* No key survives the erasure of its account, whichever of the two waits for the other. */

const { backend, base, newClient } = await startService(t, { jobs: [] })
const { query } = backend.postgres

async function newAccount(email: string) {
  const client = await newClient(email)
  return {
    account: await accountIdOf(backend, email),
    erase: () => client.post('/v1/account/erase', { email }),
    mint: () => client.post('/v1/keys', { name: 'Phone' }),
  }
}

async function expectNothingLeft(t: Test, account: string, keys: number): Promise<void> {
  t.equal(await countRows(backend, { table: 'memory_keys', account }), 0)
  const { rows } = await query<{ vaults: string[]; all: string[]; counts: { keys: number } }>(
    `select e.vaults, e.counts, array(select id from vaults v where v.account = $1 order by id) as all
     from account_erasures e where e.account = $1`,
    [account],
  )
  t.same(rows[0]!.vaults, rows[0]!.all, 'every vault is erased')
  t.equal(rows[0]!.counts.keys, keys)
}

t.test('409: a key is minted while the account is being erased', async t => {
  const { account, erase, mint } = await newAccount('first@example.com')
  const release = await holdRow(
    t,
    backend,
    'select from accounts where id = $1 for update',
    account,
  )
  const erased = erase()
  await untilWaiting(backend, 1)
  const minted = mint()
  await untilWaiting(backend, 2)
  await release()
  t.equal((await erased).status, 202)
  const { status, body } = await minted
  t.equal(status, 409, JSON.stringify(body))
  t.match(body, { error: /being erased/, hint: /refused/ })
  await expectNothingLeft(t, account, 1)
})

t.test('a key that was minted first is erased with its vault', async t => {
  const { account, erase, mint } = await newAccount('second@example.com')
  const release = await holdAccountEvents(t, backend, account)
  const minted = mint()
  await untilWaiting(backend, 1)
  const erased = erase()
  await untilWaiting(backend, 2)
  await release()
  const { status, body } = await minted
  t.equal(status, 201)
  t.equal((await erased).status, 202)
  await expectNothingLeft(t, account, 2)
  t.equal((await createTestClient(base, body.key).get('/v1/memory/stats')).status, 401)
})
