import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { receiptKeys, verifyReceipt } from '#shared/accounts/erasure-receipt.ts'
import { finishAccountErasure } from '#shared/accounts/erase-account.ts'
import { purgeErasedAccounts } from '#shared/accounts/account-erasures.postgres.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { removeDocuments, removeErasures } from '#test/support/checks/alter.ts'
import { makeJobsDue, postponeJobs } from '#test/support/checks/alter-jobs.ts'
import { countDocuments, tablesHolding, vaultsOfAccount } from '#test/support/checks/observe.ts'
import { countOpenOperations } from '#test/support/checks/observe-jobs.ts'
import { uploadFile } from '#test/support/start/memory-file.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

// Without the sweep, which purges erased accounts.
const { backend, base, newClient } = await startService(t, { jobs: allJobsBut('sweep') })
const { query } = backend.postgres
const anonymous = createTestClient(base)
const path = '/v1/account/erase'

/** Lets the look for empty vaults come now. */
const hurry = () => makeJobsDue(backend, 'account-erase')

async function receiptOf(id: string) {
  await waitUntil('the account is erased', async () => {
    await hurry()
    return (await anonymous.get(`/v1/receipts/${id}`)).body.status === 'erased'
  })
  return (await anonymous.get(`/v1/receipts/${id}`)).body
}

/** The tables, queue included, that hold one of these words. */
async function mentions(...words: string[]): Promise<string[]> {
  const pattern = words.map(word => word.replaceAll(/\W/g, String.raw`\$&`)).join('|')
  return (await tablesHolding(backend, pattern)).toSorted()
}

t.test('an account with everything: gone from both stores, with a receipt', async t => {
  const email = 'Rosa@Example.com'.toLowerCase()
  const team = await buildTeam(backend, email)
  const client = await newClient(email)
  const admin = createTestClient(base, team.adminKey)
  const memberKey = await team.addMember('ada@example.com', [])
  const member = createTestClient(base, memberKey)
  const stranger = await newClient()

  const said = (content: string) => ({
    messages: [{ role: 'user', content }],
    session_id: 'chat-1',
  })
  const once = { 'idempotency-key': 'once' }
  await client.post('/v1/memory/ingest?wait=true', said('my cat is called Ada'), once)
  await uploadFile(client, [{ content: 'we moved to Lisbon', role: 'user' }])
  const second = await client.post('/v1/keys', { name: 'Phone' })
  await client.post('/v1/memory/transfer', { destination_key: second.body.key })
  await client.post('/v1/memory/search', { query: 'cat', limit: 1 }, once)
  await member.post('/v1/memory/ingest?wait=true', said('the safe opens with 1234'))
  await seedTeamMemories(backend, team, [{ text: 'the launch is in May' }])
  await client.send('PUT', '/v1/account/provider-keys/openai', {
    body: { key: 'sk-0123456789abcd' },
  })
  const hook = { url: 'https://example.com/', events: ['operation.finished', 'key.revoked'] }
  await client.post('/v1/account/webhooks', hook)
  await stranger.post('/v1/memory/ingest?wait=true', said('I am somebody else'))
  await backend.usage.flush()
  const ids = await vaultsOfAccount(backend, team.account)
  t.ok((await mentions(team.account, ...ids)).length > 8)

  t.match(await client.post(path, { email: 'somebody@example.com' }), {
    status: 400,
    body: { error: /not that of this account/ },
  })
  t.equal((await client.get('/v1/memory/stats')).status, 200, 'nothing has happened')

  const asked = await client.post(path, { email: 'ROSA@example.com' })
  t.match(asked, { status: 202, body: { status: 'erasing', receipt: null, finished_at: null } })
  for (const dead of [client, member, createTestClient(base, second.body.key)]) {
    t.equal((await dead.get('/v1/memory/stats')).status, 401)
  }
  t.equal((await admin.get('/v1/orgs')).status, 401)

  const answer = await receiptOf(asked.body.receipt_id)
  const { keys } = (await anonymous.get('/v1/receipts/key')).body
  const receipt = verifyReceipt(answer.receipt, keys)!
  t.match(receipt, {
    id: asked.body.receipt_id,
    account: team.account,
    finished_at: answer.finished_at,
    erased: {
      keys: 5,
      admin_keys: 1,
      provider_keys: 1,
      webhooks: 1,
      organizations: 1,
      members: 1,
      vaults: ids.length,
    },
    remaining: { empty_vault_ids: ids.length },
  })
  t.ok(receipt.erased.memories >= 5, `${receipt.erased.memories} memories`)
  t.ok(receipt.erased.records > 5, `${receipt.erased.records} records`)

  for (const vault of ids) {
    t.equal(await countDocuments(backend, vault), 0)
  }
  t.same(
    await mentions(
      'rosa@example.com',
      'ada@example.com',
      'Lisbon',
      'my cat',
      'safe opens',
      'launch',
    ),
    [],
    'no word and no name',
  )
  const left = (await mentions(team.account, ...ids)).filter(name => !name.startsWith('pgboss.'))
  t.same(
    left,
    ['account_erasures', 'accounts', 'erasures', 'vaults'].map(name => `public.${name}`),
  )
  t.same((await stranger.get('/v1/memory/stats')).body.memories, 1, 'others keep theirs')

  const again = await buildKey(backend, email)
  t.equal(
    (await createTestClient(base, again).get('/v1/memory/stats')).body.memories,
    0,
    'a new beginning',
  )

  await removeErasures(backend, ids)
  const { rowCount } = await query(
    `insert into vaults (id, account) select gen_random_uuid(), $1 from generate_series(1, 2_001)`,
    [team.account],
  )
  t.equal(rowCount, 2_001, 'more vaults than one statement deletes')
  t.equal(await purgeErasedAccounts(query), 1)
  t.equal(await purgeErasedAccounts(query), 0)
  t.same(
    (await mentions(team.account, ...ids)).filter(name => !name.startsWith('pgboss.')),
    ['public.account_erasures'],
  )

  const folder = t.testdir()
  const [file, keyFile] = [join(folder, 'receipt.json'), join(folder, 'keys.json')]
  writeFileSync(file, JSON.stringify(answer))
  writeFileSync(keyFile, JSON.stringify({ keys }))
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['scripts/verify-receipt.ts', file, '--keys', keyFile, ...args])
  const told = execFileSync(process.execPath, [
    'scripts/verify-receipt.ts',
    file,
    '--keys',
    keyFile,
    '--json',
    '--email',
    'rosa@Example.com',
  ])
  t.same(JSON.parse(told.toString()), receipt)
  t.equal(run('--email', 'ada@example.com').status, 1)
  const [head, body, signature] = answer.receipt.split('.')
  const forged = Buffer.from(JSON.stringify({ ...receipt, account: 'mine' })).toString('base64url')
  writeFileSync(file, [head, forged, signature].join('.'))
  t.match(run(), { status: 1, stderr: /not genuine/ })
  t.equal(verifyReceipt([head, body, signature].join('.'), []), undefined)
  writeFileSync(file, '{"receipt": null}')
  t.equal(run().status, 2)
})

t.test('an account is not erased before its vaults are empty', async t => {
  const key = await buildKey(backend, 'slow@example.com')
  const { scope } = await resolveCaller(backend, key)
  const asked = await createTestClient(base, key).post(path, { email: 'slow@example.com' })
  await postponeJobs(backend, 'account-erase')
  const operation = asked.body.receipt_id as string
  await waitUntil('the vault is cleared', async () => {
    return (await countOpenOperations(backend, [scope.vault])) === 0
  })
  await backend.mongo.memories.insertOne({ _id: operation, vault: scope.vault, epoch: 1 } as never)
  t.equal(await finishAccountErasure(backend, { operation, look: 7 }), false)
  t.equal((await anonymous.get(`/v1/receipts/${operation}`)).body.status, 'erasing')
  await removeDocuments(backend, scope.vault, [operation])
  const { receipt } = await receiptOf(operation)
  t.equal(await finishAccountErasure(backend, { operation, look: 9 }), true)
  t.equal((await anonymous.get(`/v1/receipts/${operation}`)).body.receipt, receipt, 'signed once')
})

t.test('202: for the admin of the email, whose credential ends with it', async t => {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  t.equal((await admin.post(path, { email: team.email })).status, 202, 'the admin of the email')
  t.equal((await admin.get('/v1/orgs')).status, 401)
})

t.test('two requests at once erase once', async t => {
  const client = await newClient('twice@example.com')
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => client.post(path, { email: 'twice@example.com' })),
  )
  t.same(answers.map(({ status }) => status).filter(status => status === 202).length, 1)
  t.ok(answers.every(({ status }) => status === 202 || status === 400 || status === 401))
})

t.test('receipts outlive the rotation of the master key', async t => {
  const [first] = backend.config.masterKeys
  const newer = { id: 'newer', key: Buffer.alloc(32, 9) }
  const keys = receiptKeys([newer, first!])
  t.equal(keys.length, 2)
  t.same(keys[1], receiptKeys([first!])[0])
  t.notSame(keys[0]!.x, keys[1]!.x)
  t.notMatch(JSON.stringify(keys), /"d"/)
})
