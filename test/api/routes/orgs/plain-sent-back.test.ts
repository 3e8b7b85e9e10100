import t from 'tap'
import { buildOrg } from '#test/support/admin.ts'
import { startService } from '#test/support/start-service.ts'

const { backend, base, newClient } = await startService(t)

t.test('what a GET answers, PUT and PATCH take', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const owner = await newClient()
  const role = (await admin.post(`${path}/roles`, { name: 'Sales', allowed_tags: ['*'] })).body
  const question = {
    label: 'money',
    question: 'Is it about money?',
    examples: ['a'],
    negatives: [],
  }
  const tag = (await admin.post(`${path}/tags`, question)).body
  const person = {
    email: 'ann@example.com',
    first_name: 'Ann',
    last_name: 'B',
    role_ids: [role.role_id],
  }
  const { user_id: user } = (await admin.post(`${path}/users`, person)).body
  await admin.post(`${path}/memories`, { text: 'We sell ferries', tags: ['money'] })
  const [memory] = (await admin.get(`${path}/memories`)).body.items
  await admin.send('PUT', `${path}/instructions`, { body: { anti_rules: [{ match: 'pay' }] } })
  const hook = { url: 'https://example.com/hook', events: ['key.revoked', 'key.revoked'] }
  const { id: webhook } = (await owner.post('/v1/account/webhooks', hook)).body

  const listed = async (list: string, name: string, field: string, id: string) => {
    const { body } = await admin.get(`${path}/${list}`)
    return body[name].find((row: Record<string, unknown>) => row[field] === id)
  }
  const cases: [client: typeof admin, method: string, path: string, read: () => Promise<object>][] =
    [
      [admin, 'PATCH', path, async () => (await admin.get(path)).body],
      [
        admin,
        'PUT',
        `${path}/instructions`,
        async () => (await admin.get(`${path}/instructions`)).body,
      ],
      [admin, 'PUT', `${path}/policy`, async () => (await admin.get(`${path}/policy`)).body],
      [
        admin,
        'PATCH',
        `${path}/roles/${role.role_id}`,
        () => listed('roles', 'roles', 'role_id', role.role_id),
      ],
      [
        admin,
        'PATCH',
        `${path}/tags/${tag.tag_id}`,
        () => listed('tags', 'tags', 'tag_id', tag.tag_id),
      ],
      [admin, 'PATCH', `${path}/users/${user}`, () => listed('users', 'users', 'user_id', user)],
      [
        admin,
        'PATCH',
        `${path}/memories/${memory.mem_id}`,
        () => listed('memories', 'items', 'mem_id', memory.mem_id),
      ],
      [
        owner,
        'PUT',
        '/v1/account/policy',
        async () => (await owner.get('/v1/account/policy')).body,
      ],
      [
        owner,
        'PATCH',
        `/v1/account/webhooks/${webhook}`,
        async () => (await owner.get(`/v1/account/webhooks/${webhook}`)).body,
      ],
    ]
  for (const [client, method, at, read] of cases) {
    const settled = async () => ({ ...(await read()), updated_at: 0, decided_by: 'anyone' })
    const before = await settled()
    const answer = await client.send(method, at, { body: await read() })
    t.equal(answer.status, 200, `${method} ${at}: ${JSON.stringify(answer.body)}`)
    t.same(await settled(), before, at)
  }
})

t.test('a PATCH without fields changes nothing, its time neither', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const before = (await admin.get(path)).body
  t.equal((await admin.send('PATCH', path, { body: {} })).status, 200)
  t.same((await admin.get(path)).body.updated_at, before.updated_at)
})

t.test('the reviewed marker is a flag: true, false, 1 or 0', async t => {
  const { admin, path } = await buildOrg(backend, base)
  await admin.post(`${path}/memories`, { text: 'We sell ferries' })
  const [{ mem_id: id }] = (await admin.get(`${path}/memories`)).body.items
  for (const [reviewed, shown] of [
    [1, true],
    [0, false],
    [true, true],
  ] as const) {
    const patched = await admin.send('PATCH', `${path}/memories/${id}`, { body: { reviewed } })
    t.match(patched, { status: 200, body: { reviewed: shown } }, String(reviewed))
  }
  t.equal(
    (await admin.send('PATCH', `${path}/memories/${id}`, { body: { reviewed: 2 } })).status,
    400,
  )
})
