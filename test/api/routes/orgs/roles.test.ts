import t from 'tap'
import { dropOldResponses } from '#shared/operations/table-cleanup.postgres.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { loseAnswers } from '#test/support/checks/alter-jobs.ts'
import { countRows } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { admin, org, path } = await buildOrg(backend, base)

t.test('201: a role, its tags each once in their order', async t => {
  const { status, body } = await admin.post(`${path}/roles`, {
    name: 'Finance',
    allowed_tags: ['money', 'tax', 'money', 'Tax'],
  })
  t.equal(status, 201)
  t.match(body, { org_id: org, name: 'Finance', allowed_tags: ['money', 'tax', 'Tax'] })
  t.strictSame((await admin.get(`${path}/roles`)).body, { roles: [body] })
  t.strictSame((await admin.post(`${path}/roles`, { name: 'None' })).body.allowed_tags, [])
})

t.test('200: PATCH writes only what is there', async t => {
  const { body: role } = await admin.post(`${path}/roles`, { name: 'P', allowed_tags: ['a', 'b'] })
  const at = `${path}/roles/${role.role_id}`
  const patch = async (body: unknown) => (await admin.send('PATCH', at, { body })).body
  t.strictSame(await patch({ name: 'Q' }), { ...role, name: 'Q' })
  t.strictSame(await patch({ allowed_tags: ['b'] }), { ...role, name: 'Q', allowed_tags: ['b'] })
  t.strictSame(await patch({ allowed_tags: [] }), { ...role, name: 'Q', allowed_tags: [] })
  t.match(await patch({}), { error: 'Nothing to change' })
})

t.test('200: DELETE takes it from everybody', async t => {
  const ids: string[] = []
  for (const name of ['D1', 'D2']) {
    ids.push((await admin.post(`${path}/roles`, { name })).body.role_id)
  }
  await admin.post(`${path}/role-assignments`, { team_member_id: 'deb', role_ids: ids })
  const gone = await admin.send('DELETE', `${path}/roles/${ids[0]}`)
  t.strictSame(gone, { ...gone, status: 200, body: { deleted: true, id: ids[0] } })
  const { users } = (await admin.get(`${path}/users`)).body
  t.strictSame(users[0].role_ids, [ids[1]])
  t.equal((await admin.send('DELETE', `${path}/roles/${ids[0]}`)).status, 404)
})

t.test('409: a name that is taken, in this organization alone', async t => {
  const { body: role } = await admin.post(`${path}/roles`, { name: 'Sales' })
  t.equal((await admin.post(`${path}/roles`, { name: 'sales' })).status, 409)
  const other = (await admin.post(`${path}/roles`, { name: 'Support' })).body.role_id
  const renamed = await admin.send('PATCH', `${path}/roles/${other}`, { body: { name: 'SALES' } })
  t.match(renamed, { status: 409, body: { error: /name/ } })
  const own = await admin.send('PATCH', `${path}/roles/${role.role_id}`, {
    body: { name: 'SALES' },
  })
  t.equal(own.status, 200)
  const elsewhere = await buildOrg(backend, base)
  t.equal((await elsewhere.admin.post(`${elsewhere.path}/roles`, { name: 'Sales' })).status, 201)
})

t.test('409: of two creations of one name at once one is made', async t => {
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => admin.post(`${path}/roles`, { name: 'Race' })),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
})

t.test('the same Idempotency-Key makes one role, also when its answer was lost', async t => {
  const headers = { 'idempotency-key': 'role' }
  const one = await admin.post(`${path}/roles`, { name: 'Once' }, headers)
  t.strictSame((await admin.post(`${path}/roles`, { name: 'Once' }, headers)).body, one.body)
  await loseAnswers(backend)
  t.strictSame((await admin.post(`${path}/roles`, { name: 'Once' }, headers)).body, one.body)
  t.equal((await admin.post(`${path}/roles`, { name: 'Once' })).status, 409)
})

t.test('200: removing roles, tags, users and keys is answered again, lost answers too', async t => {
  const { query } = backend.postgres
  const role = (await admin.post(`${path}/roles`, { name: 'Going' })).body.role_id
  const tag = (await admin.post(`${path}/tags`, { label: 'going', question: '?' })).body.tag_id
  const user = (await admin.post(`${path}/users`, { email: 'going@example.com' })).body.user_id
  const key = (await admin.post(`${path}/keys`, { team_member_id: 'staying' })).body.id
  const removals = [`roles/${role}`, `tags/${tag}`, `users/${user}`, `keys/${key}`]
  for (const what of removals) {
    const headers = { 'idempotency-key': 'going' }
    const remove = () => admin.send('DELETE', `${path}/${what}`, { headers })
    const first = await remove()
    t.match(first, { status: 200, body: { deleted: true } }, what)
    t.strictSame((await remove()).body, first.body)
    await loseAnswers(backend)
    t.match(await remove(), { status: 200, body: first.body }, `${what}: the answer was lost`)
    t.match(await remove(), { status: 200, body: first.body })
  }
  for (const what of removals.slice(0, 3)) {
    const headers = { 'idempotency-key': 'another' }
    const { status } = await admin.send('DELETE', `${path}/${what}`, { headers })
    t.equal(status, 404, 'another request finds nothing')
  }
  await ageRows(backend, 'policy_removals', '26 hours')
  await dropOldResponses(query)
  t.equal(await countRows(backend, 'policy_removals'), 0)
})

t.test('400: the roles of one person allow no more than 1,000 tags together', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const labels = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `label ${from + n}`)
  const roleOf = async (name: string, allowed_tags: string[]): Promise<string> =>
    (await admin.post(`${path}/roles`, { name, allowed_tags })).body.role_id
  const ten = await Promise.all(
    Array.from({ length: 10 }, (_, n) => roleOf(`Hundred ${n}`, labels(n * 100, 100))),
  )
  const same = await roleOf('The same', labels(0, 100))
  const other = await roleOf('Another', ['*'])
  const refused = { status: 400, body: { error: /1000 tags/, hint: /\*/ } }
  const full = { team_member_id: 'full', role_ids: [...ten, same] }
  const { status, body } = await admin.post(`${path}/role-assignments`, full)
  t.equal(status, 200)
  const over = { ...full, role_ids: [...ten, other] }
  t.match(await admin.post(`${path}/role-assignments`, over), refused)
  const user = { email: 'x@example.com', role_ids: [...ten, other] }
  t.match(await admin.post(`${path}/users`, user), refused)
  const at = `${path}/users/${body.user_id}`
  t.match(await admin.send('PATCH', at, { body: { role_ids: [...ten, other] } }), refused)
  t.same((await admin.get(`${path}/users`)).body.users[0].role_ids, full.role_ids, 'as it was')

  const change = (allowed_tags: string[]) =>
    admin.send('PATCH', `${path}/roles/${same}`, { body: { allowed_tags } })
  t.match(await change(['label 1', 'one more']), refused)
  t.match(await change(['label 1']), { status: 200 })
})
