import t from 'tap'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { loseAnswers } from '#test/support/checks/alter-jobs.ts'
import { lastUseOf, ownerEmailOf, tableText } from '#test/support/checks/observe.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t, { jobs: ['ingest'] })
const { admin, org, path } = await buildOrg(backend, base)

t.test('201: a member key with the member and their private vault', async t => {
  const { status, body } = await admin.post(`${path}/keys`, { team_member_id: 'Ann@Example.com' })
  t.equal(status, 201)
  t.match(body, {
    key_id: /^mk_org_[0-9A-Za-z]{32}$/,
    memory_key: body.key_id,
    org_id: org,
    team_member_id: 'ann@example.com',
  })
  t.ok(isSinceStart(body.created_at))
  const { users } = (await admin.get(`${path}/users`)).body
  t.match(users, [
    { email: 'ann@example.com', team_member_id: 'ann@example.com', has_memory_key: true },
  ])

  const second = await admin.post(`${path}/keys`, { team_member_id: 'ann@example.com' })
  t.not(second.body.key_id, body.key_id)
  t.equal((await admin.get(`${path}/users`)).body.users.length, 1, 'the same member')

  await createTestClient(base, body.key_id).post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'one vault' }],
  })
  const there = await createTestClient(base, second.body.key_id).get('/v1/memory/stats')
  t.equal(there.body.memories, 1, 'and the same private vault')
})

t.test('a name that is no email is another one when a letter differs', async t => {
  const { admin, path } = await buildOrg(backend, base)
  for (const team_member_id of ['u-aB', 'u-Ab', 'u-aB', ' u-aB ']) {
    await admin.post(`${path}/keys`, { team_member_id })
  }
  const { users } = (await admin.get(`${path}/users`)).body
  t.strictSame(
    users.map((user: { team_member_id: string }) => user.team_member_id),
    ['u-aB', 'u-Ab'],
  )
  t.equal(users[0].email, null)
})

t.test('201: keys minted for one name at once are keys of one member', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => admin.post(`${path}/keys`, { team_member_id: 'eve' })),
  )
  t.ok(answers.every(({ status }) => status === 201))
  t.equal((await admin.get(`${path}/users`)).body.users.length, 1)
  t.equal((await admin.get(`${path}/keys`)).body.keys.length, 8)
})

t.test('200: a masked listing, searched by what is known of keys in clear', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const bob = (await admin.post(`${path}/keys`, { team_member_id: 'bob@example.com' })).body
  const cat = (await admin.post(`${path}/keys`, { team_member_id: 'Cat%_\\' })).body
  const found = async (q: string) =>
    (await admin.get(`${path}/keys?q=${encodeURIComponent(q)}`)).body.keys.map(
      (key: { id: string }) => key.id,
    )
  const { keys } = (await admin.get(`${path}/keys`)).body
  t.match(keys[0], {
    id: bob.id,
    key_id: bob.id,
    masked_key: `mk_org_…${bob.key_id.slice(-4)}`,
    active: true,
    revoked_at: null,
    last_used_at: null,
  })
  t.notMatch(JSON.stringify(keys), bob.key_id.slice(7, 20))
  t.strictSame(await found('BOB@'), [bob.id])
  t.strictSame(await found(bob.key_id), [bob.id], 'a whole key')
  t.strictSame(await found(bob.key_id.slice(9, 20)), [], 'of what is sealed no piece is known')
  t.strictSame(await found(bob.key_id.slice(-4).toUpperCase()), [bob.id])
  t.strictSame(await found(`…${bob.key_id.slice(-4)}`), [bob.id])
  t.strictSame(await found(bob.id.toUpperCase()), [bob.id])
  t.strictSame(await found('%_\\'), [cat.id], 'nothing in it is a pattern')
  t.strictSame(await found(''), [bob.id, cat.id])
  t.strictSame(await found('nobody'), [])

  const user = { email: 'dee@example.com', first_name: 'Désirée', last_name: 'Okafor' }
  await admin.post(`${path}/users`, user)
  const dee = (await admin.post(`${path}/keys`, { team_member_id: 'dee@example.com' })).body
  const users = (await admin.get(`${path}/users`)).body.users as {
    email: string
    user_id: string
  }[]
  const { user_id: id } = users.find(({ email }) => email === user.email)!
  await admin.send('PATCH', `${path}/users/${id}`, { body: { email: 'moved@example.org' } })
  for (const q of ['MOVED@', 'DÉSIRÉE oka', 'de\u0301sire\u0301e', 'Okafor'])
    t.strictSame(await found(q), [dee.id], q)
})

t.test('409: a key whose master key is gone is listed, found and revoked, not shown', async t => {
  const { admin, key, path } = await buildOrg(backend, base)
  const minted = (await admin.post(`${path}/keys`, { team_member_id: 'gus' })).body
  const masterKeys = [{ id: 'other', key: Buffer.alloc(32, 7) }]
  const later = await createTestBackend(t, { config: { ...backend.config, masterKeys } })
  const again = createTestClient((await startTestApi(t, later)).base, key)
  const listed = { id: minted.id, masked_key: `mk_org_…${minted.key_id.slice(-4)}`, active: true }
  for (const q of ['', '?q=gus', `?q=${minted.key_id}`]) {
    t.match(await again.get(`${path}/keys${q}`), { status: 200, body: { keys: [listed] } }, q)
  }
  const shown = await again.get(`${path}/keys/${minted.id}`)
  t.match(shown, { status: 409, body: { error: /cannot be shown/, hint: /master key/ } })
  t.match(await again.send('DELETE', `${path}/keys/${minted.id}`), { status: 200 })
})

t.test('200: a key whole, by its id and by itself', async t => {
  const { body: minted } = await admin.post(`${path}/keys`, { team_member_id: 'dan' })
  const whole = { ...minted, active: true, revoked_at: null, last_used_at: null }
  t.match((await admin.get(`${path}/keys/${minted.id}`)).body, whole)
  t.match((await admin.get(`${path}/keys/${minted.key_id}`)).body, whole)
  t.notMatch(await tableText(backend, 'memory_keys'), minted.key_id.slice(7), 'it is stored sealed')
})

t.test('200: a revoked key opens nothing from the next request on', async t => {
  const second = await startTestApi(t, await createTestBackend(t, { config: backend.config }))
  for (const by of ['id', 'key_id']) {
    const { body: minted } = await admin.post(`${path}/keys`, { team_member_id: `rev-${by}` })
    const member = createTestClient(second.base, minted.key_id)
    t.equal((await member.get('/v1/memory/stats')).status, 200)
    const gone = await admin.send('DELETE', `${path}/keys/${minted[by]}`)
    t.strictSame(gone.body, { deleted: true, id: minted.id })
    t.equal((await member.get('/v1/memory/stats')).status, 401)

    const listed = (await admin.get(`${path}/keys?q=rev-${by}`)).body.keys[0]
    t.equal(listed.active, false)
    t.ok(isSinceStart(listed.revoked_at))
    t.equal((await admin.send('DELETE', `${path}/keys/${minted.id}`)).status, 200, 'again')
    const { revoked_at } = (await admin.get(`${path}/keys/${minted.id}`)).body
    t.equal(revoked_at, listed.revoked_at, 'the first time counts')
  }
})

t.test('when a key was last used', async t => {
  const { body: minted } = await admin.post(`${path}/keys`, { team_member_id: 'used' })
  const member = createTestClient(base, minted.key_id)
  const lastUsed = async (at = admin) =>
    (await at.get(`${path}/keys/${minted.id}`)).body.last_used_at
  t.equal(await lastUsed(), null)
  await member.get('/v1/memory/stats')
  const first = await lastUsed()
  t.ok(isSinceStart(first))
  await member.get('/v1/memory/stats')
  t.equal(await lastUsed(), first, 'to the minute')

  await ageRows(backend, 'memory_keys', '1 hour')
  await Promise.all(Array.from({ length: 20 }, () => member.get('/v1/memory/stats')))
  await waitUntil('a use is written by itself', async () => {
    const used = await lastUseOf(backend, minted.id)
    return used !== null && isSinceStart(used.getTime())
  })
})

t.test('the same Idempotency-Key mints one key', async t => {
  const headers = { 'idempotency-key': 'mint' }
  // Longer than the four characters of a key that a search compares.
  const body = { team_member_id: 'only-once' }
  const one = await admin.post(`${path}/keys`, body, headers)
  t.strictSame((await admin.post(`${path}/keys`, body, headers)).body, one.body)
  t.equal((await admin.get(`${path}/keys?q=only-once`)).body.keys.length, 1)

  const answers = await Promise.all(
    Array.from({ length: 5 }, () =>
      admin.post(`${path}/keys`, { team_member_id: 'many-at-once' }, { 'idempotency-key': 'race' }),
    ),
  )
  t.ok(answers.every(({ status }) => status === 201 || status === 409))
  t.equal((await admin.get(`${path}/keys?q=many-at-once`)).body.keys.length, 1)
})

t.test('a mint whose answer was lost answers with the key it made', async t => {
  const headers = { 'idempotency-key': 'lost' }
  const body = { team_member_id: 'lost-answer' }
  const one = await admin.post(`${path}/keys`, body, headers)
  await loseAnswers(backend, 'lost')
  t.strictSame((await admin.post(`${path}/keys`, body, headers)).body, one.body)
  t.equal((await admin.get(`${path}/keys?q=lost-answer`)).body.keys.length, 1)
})

t.test('a member sees their own operations; nobody else does', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const keys: string[] = []
  for (const team_member_id of ['one', 'two']) {
    keys.push((await admin.post(`${path}/keys`, { team_member_id })).body.key_id)
  }
  const minted = keys.map(key => createTestClient(base, key))
  const operations: string[] = []
  for (const member of minted) {
    await member.post(
      '/v1/memory/ingest?wait=true',
      { messages: [{ role: 'user', content: 'x' }] },
      { 'x-session-id': 'private' },
    )
    const { items } = (await member.get('/v1/operations')).body
    t.equal(items.length, 1)
    operations.push(items[0].operation_id)
  }
  t.equal((await minted[0]!.get(`/v1/operations/${operations[0]}`)).status, 200)
  t.equal((await minted[0]!.get(`/v1/operations/${operations[1]}`)).status, 404)
  t.equal((await minted[0]!.send('DELETE', `/v1/operations/${operations[1]}`)).status, 404)
  t.equal((await minted[0]!.get(`/v1/memory/${keys[0]}/stats`)).status, 200)
  t.equal((await minted[0]!.get(`/v1/memory/${keys[1]}/stats`)).status, 404)

  const email = await ownerEmailOf(backend, path.split('/').at(-1)!)
  const owner = await newClient(email)
  t.strictSame((await owner.get('/v1/operations')).body.items, [], 'and not those of members')
  t.equal((await owner.get(`/v1/operations/${operations[0]}`)).status, 404)
  t.equal((await owner.get(`/v1/memory/${keys[0]}/stats`)).status, 404)
})

t.test('400 and 404', async t => {
  const blank = await admin.post(`${path}/keys`, { team_member_id: '  ' })
  t.match(blank, { status: 400, body: { error: /team_member_id/ } })
  for (const id of [`mk_org_${'0'.repeat(32)}`, "' or 1=1"]) {
    const at = `${path}/keys/${encodeURIComponent(id)}`
    t.match(await admin.get(at), { status: 404, body: { error: 'No such key' } })
    t.match(await admin.send('DELETE', at), { status: 404, body: { error: 'No such key' } })
  }
})

t.test("the organization's own key reads, stores nothing, and is no member", async t => {
  const { admin, path, orgKey } = await buildOrg(backend, base)
  const nobody = createTestClient(base, orgKey)
  t.equal((await nobody.post('/v1/memory/search', { query: 'x', limit: 5 })).status, 200)
  const stored = await nobody.post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'x' }],
  })
  t.match(stored, { status: 202, body: { accepted: false } })
  t.equal((await nobody.get('/v1/orgs')).status, 401)
  t.strictSame((await admin.get(`${path}/keys`)).body, { keys: [] })
  t.strictSame((await admin.get(`${path}/users`)).body, { users: [] })
  t.equal((await admin.get(`${path}/keys/${orgKey}`)).status, 404, 'it was shown once')
  t.equal((await admin.send('DELETE', `${path}/keys/${orgKey}`)).status, 200)
  t.equal((await nobody.post('/v1/memory/search', { query: 'x', limit: 5 })).status, 401)
})
