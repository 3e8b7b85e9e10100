import t from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

/** Answers stored for Idempotency-Keys of admins and reviewers show no words that are gone for good. */

const breakGlass = { ADMIN_SECRET: 'break-the-glass-please', ADMIN_EMAIL: 'root@example.com' }
const { backend, base, newTeam } = await startTeamService(t, { working: false, env: breakGlass })
await startJobWorkers(backend, ...jobNames.filter(name => name !== 'sweep'))
const again = { 'idempotency-key': 'again' }

async function begin() {
  const acme = await newTeam()
  const path = `/v1/orgs/${acme.org}/memories`
  const { body } = await acme.admin.post(`/v1/orgs/${acme.org}/reviewers`, { email: 'rita@x.org' })
  await acme.share('Fact: launch: in May')
  const [memory] = await acme.memories()
  const rita = createTestClient(base, body.reviewer_key)
  return { acme, path, one: `${path}/${memory!.id}`, rita }
}

t.test('409: words that a member took back', async t => {
  const { acme, path, one } = await begin()
  const seeds = { items: [{ text: 'The office is in Graz.', tags: [] }] }
  const seed = () => acme.admin.post(path, seeds, again)
  const seeded = await seed()
  const change = () => acme.admin.send('PATCH', one, { body: { reviewed: true }, headers: again })
  const first = await change()
  t.match(first, { status: 200, body: { text: 'launch: in May' } })
  t.strictSame((await change()).body, first.body)

  await ageRows(backend, 'shared_statements', '10 minutes')
  const member = createTestClient(base, acme.key)
  const [statement] = (await member.get('/v1/shares')).body.items
  t.equal((await member.send('DELETE', `/v1/shares/${statement.id}`)).status, 200)
  const changed = await change()
  t.match(changed, { status: 409, body: { error: /cannot be given again/ } })
  t.notMatch(JSON.stringify(changed.body), /May/)
  t.equal((await acme.admin.send('PATCH', one, { body: { reviewed: true } })).status, 404)
  t.strictSame((await seed()).body, seeded.body, 'a seeding is made once')
})

t.test('409: words that an admin removed for good, for reviewers too', async t => {
  const { acme, path, one, rita } = await begin()
  const { body: doubted } = await acme.admin.post(path, { text: 'The roof leaks.', confidence: 0 })
  const other = `${path}/${doubted.mem_id}`
  const asks = [
    () => rita.post(`${other}/review`, { action: 'dismiss' }, again),
    () => rita.post(`${other}/review/undo`, {}, again),
    () => acme.admin.send('PATCH', one, { body: { text: 'We launch in May.' }, headers: again }),
    () => acme.admin.post(`${one}/restore`, {}, again),
  ]
  for (const ask of asks) t.match(await ask(), { status: 200, body: { text: /./ } })
  for (const ask of asks) t.equal((await ask()).status, 200)
  const remove = () => acme.admin.send('DELETE', `${one}?permanent=true`, { headers: again })
  const removed = await remove()
  t.equal(removed.status, 200)
  for (const ask of asks) {
    const answer = await ask()
    t.equal(answer.status, 409)
    t.notMatch(JSON.stringify(answer.body), /May|roof/)
  }
  t.strictSame((await remove()).body, removed.body, 'the removal itself is answered again')
  t.equal((await rita.post(`${other}/review`, { action: 'dismiss' })).status, 200)
})

t.test('409: words that were shown to the break-glass secret', async t => {
  const team = await buildTeam(backend, breakGlass.ADMIN_EMAIL)
  const root = createTestClient(base, breakGlass.ADMIN_SECRET)
  const path = `/v1/orgs/${team.org}/memories`
  const { body: launch } = await root.post(path, { text: 'The launch is in May.' })
  const one = `${path}/${launch.mem_id}`
  const change = () => root.send('PATCH', one, { body: { reviewed: true }, headers: again })
  t.match(await change(), { status: 200, body: { text: 'The launch is in May.' } })
  t.match(await change(), { status: 200, body: { text: 'The launch is in May.' } })
  t.equal((await root.send('DELETE', `${one}?permanent=true`)).status, 200)
  const changed = await change()
  t.equal(changed.status, 409)
  t.notMatch(JSON.stringify(changed.body), /May/)
})

t.test('answers of another organization stay', async t => {
  const [here, there] = [await begin(), await begin()]
  const change = () =>
    there.acme.admin.send('PATCH', there.one, { body: { reviewed: true }, headers: again })
  const first = await change()
  await here.acme.admin.send('DELETE', `${here.one}?permanent=true`)
  t.strictSame((await change()).body, first.body)
})
