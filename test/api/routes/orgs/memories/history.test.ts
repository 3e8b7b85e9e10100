import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const team = await buildTeam(backend)
await team.defineRole('hr', ['hr'])
const admin = createTestClient(base, team.adminKey)
const member = createTestClient(base, await team.addMember('hr@example.com', ['hr']))
const path = `/v1/orgs/${team.org}/memories`

const found = async (query: string): Promise<string[]> =>
  (await member.post('/v1/memory/search', { query, limit: 20 })).body.memories.map(
    ({ content }: { content: string }) => content,
  )

t.test('200: a removed memory comes back under its id, as it was', async t => {
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'Ada has the keys to the vault', tags: ['hr'] },
  ])
  t.same(await found('keys vault'), ['Ada has the keys to the vault'])
  await admin.send('DELETE', `${path}/${id}`)
  t.same(await found('keys vault'), [])
  t.match(await admin.post(`${path}/${id}/restore`), {
    status: 200,
    body: { mem_id: id, text: 'Ada has the keys to the vault', tags: ['hr'], reviewed: true },
  })
  t.same(await found('keys vault'), ['Ada has the keys to the vault'])
  const { body } = await admin.get(`${path}/${id}/audit`)
  t.same(
    body.events.map(({ action }: { action: string }) => action),
    ['create', 'delete', 'create'],
  )
})

t.test('200: any change of the last 30 days can be gone behind', async t => {
  const [id] = await seedTeamMemories(backend, team, [{ text: 'first words', tags: ['a'] }])
  const patch = (body: unknown) => admin.send('PATCH', `${path}/${id}`, { body })
  await patch({ text: 'second words', tags: ['b'] })
  await patch({ text: 'third words' })
  const { body } = await admin.get(`${path}/${id}/history`)
  t.equal(body.count, 3)
  t.match(body.revisions, [
    { kind: 'edit', before: { text: 'second words' }, after: { text: 'third words' } },
    {
      before: { text: 'first words', tags: ['a'] },
      after: { text: 'second words', tags: ['b'] },
      events: [{ action: 'retag' }, { action: 'update' }],
    },
    { kind: 'add', actor: team.email, before: null, after: { text: 'first words' } },
  ])
  const restore = (event?: string) =>
    admin.post(`${path}/${id}/restore`, event === undefined ? {} : { event_id: event })
  t.match((await restore()).body, { text: 'second words', tags: ['b'] })
  const event = body.revisions[1].events[1].event_id
  t.match((await restore(event)).body, { text: 'first words', tags: ['a'] })
  t.match((await restore(event.toUpperCase())).body, { text: 'first words' }, 'nothing to change')
  t.equal((await restore(body.revisions[2].events[0].event_id)).status, 409)
  t.equal((await restore(crypto.randomUUID())).status, 404)
  t.equal((await restore('x')).status, 400)
})

t.test('404: after 30 days the words are forgotten, the audit is not', async t => {
  const [id] = await seedTeamMemories(backend, team, [{ text: 'old words' }])
  await admin.send('DELETE', `${path}/${id}`)
  await ageRows(backend, 'audit_events', '31 days', { memory: id! })
  await ageRows(backend, 'shared_writes', '31 days', { memory: id! })
  t.equal((await admin.post(`${path}/${id}/restore`)).status, 404)
  t.match(await sweepAll(backend), { sharedHistory: 2 })
  t.notMatch(await tableText(backend, 'shared_writes'), id!)
  t.equal((await admin.get(`${path}/${id}/audit`)).body.count, 2)
})
