import t from 'tap'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import { maskKey } from '#shared/access/key.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { accountIdOf, countRows } from '#test/support/checks/observe.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const { query } = backend.postgres
const path = '/v1/account/events'

type Event = { position: number; action: string; subject: string; actor: string }

const eventsOf = async (client: TestClient, asked = ''): Promise<Event[]> =>
  (await client.get(path + asked)).body.items

/** What happens while something is done, oldest first. */
async function noted(client: TestClient, does: () => Promise<unknown>) {
  const [last] = await eventsOf(client, '?limit=1')
  await does()
  const events = await eventsOf(client)
  return events
    .filter(({ position }) => position > last!.position)
    .toReversed()
    .map(({ action, subject, actor }) => [action, subject, actor])
}

async function newOwner() {
  const { email, key, memoryKey } = await buildAdmin(backend)
  return {
    email,
    memoryKey,
    adminKey: key,
    admin: createTestClient(base, key),
    client: createTestClient(base, memoryKey),
    by: maskKey(memoryKey),
  }
}

const accountOf = async (email: string): Promise<string> => accountIdOf(backend, email)

t.test('200: a new account begins with its keys, which nobody made over the network', async t => {
  const { admin, client, by, adminKey } = await newOwner()
  const { status, body } = await client.get(path)
  t.equal(status, 200)
  t.match(body, {
    items: [
      { position: 2, action: 'admin_key.issued', subject: maskKey(adminKey), actor: 'service' },
      { position: 1, action: 'key.minted', subject: by, actor: 'service', hash: /^[0-9a-f]{64}$/ },
    ],
    has_more: false,
    next_cursor: null,
  })
  t.same((await admin.get(path)).body, body, 'the admin sees the same')
})

t.test('200: keys that come, go and follow another', async t => {
  const { client, by } = await newOwner()
  let key = ''
  t.same(
    await noted(client, async () => {
      key = (await client.post('/v1/keys', { name: 'second' })).body.key
    }),
    [['key.minted', maskKey(key), by]],
  )
  const second = createTestClient(base, key)
  let third = ''
  t.same(
    await noted(client, async () => {
      third = (await second.post('/v1/keys/rotate', { grace_seconds: 3600 })).body.key
    }),
    [
      ['key.revoked', maskKey(key), maskKey(key)],
      ['key.rotated', maskKey(third), maskKey(key)],
    ],
  )
})

t.test('200: credentials, provider keys, policies and webhooks', async t => {
  const { admin, client, by, email } = await newOwner()
  const { body: issued } = await admin.post('/v1/account/admin-keys', {})
  const provider = '/v1/account/provider-keys/openai'
  const hook = { url: 'https://example.com/', events: ['key.revoked'] }
  const redaction = { redaction: { mode: 'redact' } }
  let webhook = ''
  const events = await noted(client, async () => {
    await admin.send('DELETE', `/v1/account/admin-keys/${issued.id}`)
    await admin.send('DELETE', `/v1/account/admin-keys/${issued.id}`)
    await client.send('PUT', provider, { body: { key: 'sk-0123456789abcdefgh' } })
    await admin.send('DELETE', provider)
    await client.send('PUT', '/v1/account/policy', { body: redaction })
    await client.send('PUT', '/v1/account/policy', { body: redaction })
    webhook = (await client.post('/v1/account/webhooks', hook)).body.id
    const one = `/v1/account/webhooks/${webhook}`
    await client.send('PATCH', one, { body: { active: false } })
    await client.post(`${one}/secret`)
    await admin.send('DELETE', one)
  })
  t.same(events, [
    ['admin_key.revoked', issued.masked_key, email],
    ['provider_key.stored', 'openai', by],
    ['provider_key.deleted', 'openai', email],
    ['policy.changed', 'account', by],
    ['webhook.created', webhook, by],
    ['webhook.changed', webhook, by],
    ['webhook.changed', webhook, by],
    ['webhook.deleted', webhook, email],
  ])
  const told = JSON.stringify(await eventsOf(client))
  for (const secret of ['sk-0123', issued.key, 'example.com/']) t.notOk(told.includes(secret))
})

t.test('200: organizations, the keys of their members, and who took something along', async t => {
  const { admin, key: adminKey, org, path: orgPath, orgKey, email } = await buildOrg(backend, base)
  const client = await newClient(email)
  const first = (await eventsOf(client)).toReversed().slice(2, 4)
  t.match(first, [
    { action: 'organization.created', subject: org, actor: email },
    { action: 'key.minted', subject: maskKey(orgKey), actor: email },
  ])
  let member = ''
  let standard = ''
  const events = await noted(client, async () => {
    member = (await admin.post(`${orgPath}/keys`, { team_member_id: 'ben' })).body.memory_key
    const user = (await admin.get(`${orgPath}/users`)).body.users[0].user_id
    standard = (await admin.post(`${orgPath}/users/${user}/memory-key`)).body.key
    await admin.send('PUT', `${orgPath}/policy`, { body: { redaction: { mode: 'block' } } })
    const ben = createTestClient(base, member)
    await ben.send('DELETE', '/v1/memory')
    t.equal((await ben.get(path)).status, 403)
    await admin.get(`${orgPath}/export`)
    await client.get('/v1/account/export')
    await admin.send('DELETE', `${orgPath}/users/${user}`)
  })
  const user = events[0]![1]
  t.same(events.slice(0, 6), [
    ['user.created', user, email],
    ['key.minted', maskKey(member), email],
    ['key.minted', maskKey(standard), email],
    ['policy.changed', org, email],
    ['organization.exported', org, email],
    ['account.exported', 'account', events[5]![2]],
  ])
  t.match(events[5]![2], /^mk_/)
  t.same(
    events.slice(6).toSorted(),
    [
      ['key.revoked', maskKey(member), email],
      ['key.revoked', maskKey(standard), email],
      ['user.deleted', user, email],
    ].toSorted(),
  )
  const ended = await noted(client, () => admin.send('DELETE', orgPath))
  t.same(
    ended.map(([action]) => action).toSorted(),
    ['key.revoked', 'organization.deleted'],
    'no clearing of a vault that never was',
  )
  t.ok(adminKey)
})

t.test('200: a vault that was emptied, not a session of it', async t => {
  const { client, by } = await newOwner()
  const events = await noted(client, async () => {
    await client.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'one' } })
    await client.send('DELETE', '/v1/memory')
  })
  t.same(events, [['vault.cleared', by, by]])
})

t.test('200: a vault that goes with its key is named by that key, whoever asks', async t => {
  const { client, admin, by, email } = await newOwner()
  for (const [requester, actor] of [
    [admin, email],
    [client, by],
  ] as const) {
    const { key } = (await client.post('/v1/keys', { name: 'x' })).body
    const { items } = (await client.get('/v1/keys')).body
    const { id } = items.find((row: { masked_key: string }) => row.masked_key === maskKey(key))
    const events = await noted(client, async () => {
      t.equal((await requester.send('DELETE', `/v1/keys/${id}?erase=true`)).status, 200)
    })
    t.same(events, [
      ['vault.cleared', maskKey(key), actor],
      ['key.revoked', maskKey(key), actor],
    ])
  }
})

t.test('200: redaction and retention that are changed together are one change', async t => {
  const { client, by } = await newOwner()
  const put = (body: object) => client.send('PUT', '/v1/account/policy', { body })
  const events = await noted(client, async () => {
    await put({ redaction: { mode: 'redact' }, retention_days: 30 })
    await put({ redaction: { mode: 'redact' }, retention_days: 30 })
    await put({ redaction: { mode: 'redact' }, retention_days: 31 })
    await put({ redaction: { mode: 'block' }, retention_days: 31 })
  })
  const change = ['policy.changed', 'account', by]
  t.same(events, [change, change, change])
})

t.test('200: a refused change leaves no event, nor does the same request sent again', async t => {
  const { client, admin } = await newOwner()
  const headers = { 'idempotency-key': 'once' }
  const events = await noted(client, async () => {
    await client.post('/v1/keys', { name: 'x', expires_at: '2001-01-01T00:00:00Z' })
    await client.post('/v1/account/webhooks', { url: 'http://10.0.0.1/', events: ['key.revoked'] })
    await admin.post('/v1/orgs', { name: ' ' })
    await client.post('/v1/keys', { name: 'y' }, headers)
    await client.post('/v1/keys', { name: 'y' }, headers)
  })
  t.same(
    events.map(([action]) => action),
    ['key.minted'],
  )
})

t.test('200: pages follow one another, filtered or not', async t => {
  const { client } = await newOwner()
  for (let n = 0; n < 7; n++) await client.post('/v1/keys', { name: `${n}` })
  const pages = await readPages<Event>(client, `${path}?limit=4&action=key.minted`)
  t.same(
    pages.map(page => page.map(({ position }) => position)),
    [
      [9, 8, 7, 6],
      [5, 4, 3, 1],
    ],
  )
  const later = new Date(Date.now() + 60_000).toISOString()
  t.same(await eventsOf(client, `?since=${later}`), [])
  t.equal((await eventsOf(client, '?since=2020-01-01')).length, 9)
})

t.test('400: a cursor is good for its own question alone', async t => {
  const { client } = await newOwner()
  const { client: other } = await newOwner()
  const { next_cursor: cursor } = (await client.get(`${path}?limit=1`)).body
  t.equal((await client.get(`${path}?limit=1&action=key.minted&cursor=${cursor}`)).status, 400)
  t.equal((await other.get(`${path}?limit=1&cursor=${cursor}`)).status, 400)
})

t.test('what is done at once makes one chain, and no row of it can be changed', async t => {
  const { client, email } = await newOwner()
  await Promise.all(Array.from({ length: 20 }, (_, n) => client.post('/v1/keys', { name: `${n}` })))
  const account = await accountOf(email)
  t.match(await verifyAccountEvents(query, account), { position: 22, broken: null })
  await t.rejects(
    query('update account_events set actor = $2 where account = $1', [account, 'somebody else']),
    /only ever added/,
  )
  await query('delete from account_events where account = $1 and position = 5', [account])
  t.match(await verifyAccountEvents(query, account), { broken: { position: 5, fault: 'missing' } })
})

t.test('they go when the account is erased', async t => {
  const { client, email } = await newOwner()
  const account = await accountOf(email)
  const { body } = await client.post('/v1/account/erase', { email })
  await waitUntil('it is erased', async () => {
    await makeJobsDue(backend, 'account-erase')
    const receipt = await createTestClient(base).get(`/v1/receipts/${body.receipt_id}`)
    return receipt.body.status === 'erased'
  })
  for (const table of ['account_events', 'account_event_heads']) {
    t.equal(await countRows(backend, { table, account }), 0, table)
  }
})
