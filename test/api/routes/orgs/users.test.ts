import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { makeErasuresDue } from '#test/support/checks/alter.ts'
import { loseAnswers } from '#test/support/checks/alter-jobs.ts'
import {
  countDocuments,
  tableText,
  tablesHolding,
  vaultOfUser,
} from '#test/support/checks/observe.ts'
import { countOpenOperations } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: ['ingest', 'clear'] })
const { admin, org, path } = await buildOrg(backend, base)
const unknown = '01890000-0000-7000-8000-000000000000'
const roles: string[] = []

t.before(async () => {
  for (const name of ['One', 'Two', 'Three']) {
    roles.push((await admin.post(`${path}/roles`, { name })).body.role_id)
  }
})

const say = (content: string) => ({ messages: [{ role: 'user', content }] })

t.test('201: a user, who has no key yet', async t => {
  const { status, body } = await admin.post(`${path}/users`, {
    email: 'Ann@Example.com',
    first_name: 'Ann',
    role_ids: [roles[1], roles[0], roles[1]],
  })
  t.equal(status, 201)
  t.match(body, {
    org_id: org,
    email: 'ann@example.com',
    team_member_id: 'ann@example.com',
    first_name: 'Ann',
    last_name: null,
    role_ids: [roles[1], roles[0]],
  })
  const { users } = (await admin.get(`${path}/users`)).body
  t.strictSame(users, [
    {
      ...body,
      roles: [
        { role_id: roles[1], name: 'Two' },
        { role_id: roles[0], name: 'One' },
      ],
      has_memory_key: false,
      shares: true,
    },
  ])
})

t.test('200: PATCH writes only what is there; role_ids replaces all', async t => {
  const { body: user } = await admin.post(`${path}/users`, {
    email: 'bob@example.com',
    role_ids: [roles[0], roles[1]],
  })
  const at = `${path}/users/${user.user_id}`
  const patch = async (body: unknown) => (await admin.send('PATCH', at, { body })).body
  t.strictSame(await patch({ last_name: 'B' }), { ...user, last_name: 'B' })
  t.strictSame((await patch({ role_ids: [roles[2]] })).role_ids, [roles[2]])
  t.strictSame((await patch({ role_ids: [] })).role_ids, [])
  t.match(await patch({ email: 'Bobby@example.com' }), {
    email: 'bobby@example.com',
    team_member_id: 'bobby@example.com',
    last_name: 'B',
  })
  const again = await admin.post(`${path}/keys`, { team_member_id: 'bobby@example.com' })
  t.equal(again.status, 201)
  const { users } = (await admin.get(`${path}/users`)).body
  t.equal(users.filter((row: { email: string }) => row.email?.startsWith('bob')).length, 1)
})

t.test('200: a member by another name has an email too, and is found by both', async t => {
  const { body } = await admin.post(`${path}/role-assignments`, {
    team_member_id: 'u-17',
    role_ids: [roles[0]],
  })
  t.strictSame(body, { user_id: body.user_id, team_member_id: 'u-17', role_ids: [roles[0]] })
  const at = `${path}/users/${body.user_id}`
  const { body: named } = await admin.send('PATCH', at, { body: { email: 'u17@example.com' } })
  t.match(named, { team_member_id: 'u-17', email: 'u17@example.com' })
  const byEmail = await admin.post(`${path}/role-assignments`, {
    team_member_id: 'U17@example.com',
    role_ids: [],
  })
  t.match(byEmail.body, { user_id: body.user_id, team_member_id: 'u-17', role_ids: [] })
})

t.test('409: an email that is taken', async t => {
  t.equal((await admin.post(`${path}/users`, { email: 'ANN@example.com' })).status, 409)
  const { body: user } = await admin.post(`${path}/users`, { email: 'cat@example.com' })
  const body = { email: 'ann@example.com' }
  const at = `${path}/users/${user.user_id}`
  t.match(await admin.send('PATCH', at, { body }), { status: 409, body: { error: /email/ } })
  const elsewhere = await buildOrg(backend, base)
  t.equal((await elsewhere.admin.post(`${elsewhere.path}/users`, body)).status, 201)
})

t.test('409: of several creations of one email at once one is made', async t => {
  const create = () => admin.post(`${path}/users`, { email: 'race@example.com' })
  const answers = await Promise.all(Array.from({ length: 6 }, create))
  t.strictSame(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
})

t.test('roles that are replaced at once end as one of the replacements', async t => {
  const { body: user } = await admin.post(`${path}/users`, { email: 'both@example.com' })
  const wanted = [[roles[0], roles[1]], [roles[2]], [roles[1], roles[2]], []]
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      wanted.flatMap(role_ids => [
        admin.send('PATCH', `${path}/users/${user.user_id}`, { body: { role_ids } }),
        admin.post(`${path}/role-assignments`, { team_member_id: 'both@example.com', role_ids }),
      ]),
    )
    const { users } = (await admin.get(`${path}/users`)).body
    const { role_ids } = users.find((row: { user_id: string }) => row.user_id === user.user_id)
    t.ok(
      wanted.some(ids => JSON.stringify(ids) === JSON.stringify(role_ids)),
      JSON.stringify(role_ids),
    )
  }
})

t.test('200: roles by a key, or by the name of somebody who is created', async t => {
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: 'keyed' })
  for (const key_id of [key.id, key.key_id]) {
    const { status, body } = await admin.post(`${path}/role-assignments`, {
      key_id,
      role_ids: [roles[2], roles[0]],
    })
    t.equal(status, 200)
    t.match(body, { team_member_id: 'keyed', role_ids: [roles[2], roles[0]] })
  }
  const { body } = await admin.post(`${path}/role-assignments`, {
    team_member_id: 'new@example.com',
    role_ids: [roles[1]],
  })
  const { users } = (await admin.get(`${path}/users`)).body
  t.match(users.at(-1), { user_id: body.user_id, email: 'new@example.com', role_ids: [roles[1]] })
})

t.test('201: a standard key of the private vault, which stays when it is rotated', async t => {
  const { body: member } = await admin.post(`${path}/keys`, { team_member_id: 'own@example.com' })
  const { users } = (await admin.get(`${path}/users`)).body
  const { user_id } = users.at(-1)
  await createTestClient(base, member.key_id).post('/v1/memory/ingest?wait=true', say('mine'))

  const at = `${path}/users/${user_id}/memory-key`
  const shared = await createTestClient(base, member.key_id).get('/v1/shares')
  t.equal(shared.body.private_key_at, null)
  const { status, body: first } = await admin.post(at)
  t.equal(status, 201)
  t.match(first, { user_id, key: /^mk_[0-9A-Za-z]{32}$/, memory_key: first.key, rotated: false })
  t.equal((await createTestClient(base, first.key).get('/v1/memory/stats')).body.memories, 1)

  const shares = async () => (await createTestClient(base, member.key_id).get('/v1/shares')).body
  t.equal((await shares()).private_key_at, first.created_at, 'the member is told')
  const reason = 'She asked for what she said in May.'
  const { body: second } = await admin.send('POST', at, { body: { reason } })
  t.equal(second.rotated, true)
  const { items } = (await admin.get('/v1/account/events?action=key.rotated')).body
  t.match(items, [{ after: { user_id, team_member_id: 'own@example.com', reason } }])
  t.equal((await createTestClient(base, first.key).get('/v1/memory/stats')).status, 401)
  t.equal((await createTestClient(base, second.key).get('/v1/memory/stats')).body.memories, 1)
  t.equal((await createTestClient(base, member.key_id).get('/v1/memory/stats')).status, 200)
  t.notMatch(await tableText(backend, 'memory_keys'), second.key.slice(3), 'it is kept nowhere')
  t.equal((await admin.get(`${path}/keys?q=own@`)).body.keys.length, 1, 'not a member key')

  const racing = await Promise.all(Array.from({ length: 5 }, () => admin.post(at)))
  const live = []
  for (const { body } of racing) {
    live.push((await createTestClient(base, body.key).get('/v1/memory/stats')).status)
  }
  t.strictSame(live.sort(), [200, 401, 401, 401, 401], 'one key at a time')
})

t.test('200: DELETE leaves nothing of the user in either store', async t => {
  const { body: member } = await admin.post(`${path}/keys`, { team_member_id: 'gone@example.com' })
  const { user_id } = (await admin.get(`${path}/users`)).body.users.at(-1)
  const { body: own } = await admin.post(`${path}/users/${user_id}/memory-key`)
  await admin.post(`${path}/role-assignments`, { key_id: member.id, role_ids: roles })
  const client = createTestClient(base, member.key_id)
  await client.post('/v1/memory/ingest?wait=true', say('a canary sings'), {
    'x-session-id': 'canary',
    'idempotency-key': 'canary',
  })
  const vault = await vaultOfUser(backend, user_id)

  const headers = { 'idempotency-key': 'gone' }
  const gone = await admin.send('DELETE', `${path}/users/${user_id}`, { headers })
  t.strictSame(gone.body, { deleted: true, id: user_id })
  for (const key of [member.key_id, own.key]) {
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 401)
  }
  await loseAnswers(backend, 'gone')
  const again = await admin.send('DELETE', `${path}/users/${user_id}`, { headers })
  t.strictSame(again.body, gone.body, 'also when the answer was lost')
  t.equal((await admin.send('DELETE', `${path}/users/${user_id}`)).status, 404)
  t.equal((await admin.get(`${path}/keys/${member.id}`)).status, 404)

  await waitUntil('the documents are gone', async () => {
    const left = await countDocuments(backend, vault)
    return left === 0
  })
  const tables = ['operations', 'usage_events', 'sessions', 'org_users', 'memory_keys']
  await waitUntil('so are the rows', async () => {
    return (await tablesHolding(backend, 'canary|gone@example', tables)).length === 0
  })
  const { body: fresh } = await admin.post(`${path}/keys`, { team_member_id: 'gone@example.com' })
  t.equal((await createTestClient(base, fresh.key_id).get('/v1/memory/stats')).body.memories, 0)
})

t.test('what members say while they are removed is gone with them', async t => {
  const vaults: string[] = []
  for (let n = 0; n < 8; n++) {
    const { body } = await admin.post(`${path}/keys`, { team_member_id: `late-${n}` })
    const { user_id } = (await admin.get(`${path}/users`)).body.users.at(-1)
    vaults.push(await vaultOfUser(backend, user_id))
    const client = createTestClient(base, body.key_id)
    const answers = await Promise.all([
      ...Array.from({ length: 6 }, (_, i) => client.post('/v1/memory/ingest', say(`late ${i}`))),
      admin.send('DELETE', `${path}/users/${user_id}`),
      client.post('/v1/memory/ingest', say('latest')),
    ])
    t.ok(answers.every(({ status }) => [200, 202, 401].includes(status)))
  }
  await waitUntil('nothing is under way', async () => {
    return (await countOpenOperations(backend, vaults)) === 0
  })
  await makeErasuresDue(backend, vaults)
  await sweepAll(backend)
  const left = await Promise.all(vaults.map(vault => countDocuments(backend, vault)))
  t.strictSame(
    left,
    vaults.map(() => 0),
  )
})

t.test('400 and 404', async t => {
  const bad: [unknown, RegExp][] = [[{ email: 'a@example.com\r\nbcc: b@example.com' }, /email/]]
  for (const [body, error] of bad) {
    t.match(await admin.post(`${path}/users`, body), { status: 400, body: { error } })
  }
  for (const body of [
    { role_ids: [] },
    { team_member_id: 'a', key_id: 'b', role_ids: [] },
    { team_member_id: ' ', role_ids: [] },
  ]) {
    t.equal((await admin.post(`${path}/role-assignments`, body)).status, 400)
  }

  const noRole = { status: 404, body: { error: 'No such role' } }
  const role_ids = [roles[0], unknown]
  t.match(await admin.post(`${path}/users`, { email: 'z@example.com', role_ids }), noRole)
  t.match(await admin.post(`${path}/role-assignments`, { team_member_id: 'zed', role_ids }), noRole)
  const names = JSON.stringify((await admin.get(`${path}/users`)).body)
  t.notMatch(names, /z@example|zed/, 'nobody was created')
  const noKey = { status: 404, body: { error: 'No such key' } }
  t.match(await admin.post(`${path}/role-assignments`, { key_id: unknown, role_ids: [] }), noKey)
})
