import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import {
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/audit`

const [id, other] = await seedTeamMemories(backend, team, [{ text: 'one' }, { text: 'two' }])
const by = (actor: string) => ({ operation: mintId(), actor, id: id! })
await updateSharedMemory(backend, team, { ...by('ann'), text: 'uno' })
await updateSharedMemory(backend, team, { ...by('bob'), tags: ['x'] })
const changedAt = Date.now()
await waitUntil('a later millisecond', () => Date.now() > changedAt)
const middle = Date.now()
await updateSharedMemory(backend, team, { ...by('ann'), text: 'eins', tags: [] })
await deleteSharedMemory(backend, team, by('bob'))

t.test('200: every change with who made it and when, newest first', async t => {
  const { status, body } = await admin.get(path)
  t.equal(status, 200)
  t.match(body, { org_id: team.org, count: 7 })
  t.same(
    body.events.map(({ action, actor }: Record<string, string>) => `${action} ${actor}`).toSorted(),
    ['create', 'create']
      .map(action => `${action} ${team.email}`)
      .concat(['delete bob', 'retag ann', 'retag bob', 'update ann', 'update ann'])
      .toSorted(),
  )
  const times = body.events.map(({ created_at }: { created_at: number }) => created_at)
  t.same(
    times,
    times.toSorted((a: number, b: number) => b - a),
  )
  t.match(body.events[0], { action: 'delete', actor: 'bob', mem_id: id })
})

t.test('200: filters', async t => {
  const count = async (query: string) => (await admin.get(`${path}?${query}`)).body.count
  t.equal(await count('actor=ann'), 3)
  t.equal(await count('action=retag'), 2)
  t.equal(await count('action=retag&actor=bob'), 1)
  t.equal(await count('limit=2'), 2)
  const [seeded, shouted] = [team.email, team.email.toUpperCase()].map(encodeURIComponent)
  t.equal(await count(`actor=${seeded}`), 2)
  t.equal(await count(`actor=${shouted}`), 2, 'an email is one in any case')
  t.equal(await count('actor=ANN'), 0, 'and no other name is')
  t.equal(await count(`since=${middle}`), 3)
  t.equal(await count(`since=${Date.now() + 60_000}`), 0)
  t.equal(await count(`actor=${encodeURIComponent("x' or '1'='1")}`), 0)
})

t.test('200: the words of what is named, as they are now; what was removed has none', async t => {
  const [kept, waiting] = await seedTeamMemories(backend, team, [
    { text: 'three', tags: ['y'] },
    { text: 'four', reviewed: false, pending: true, author: 'ann' },
  ])
  await updateSharedMemory(backend, team, { ...by('bob'), id: kept!, text: 'drei' })
  const { body } = await admin.get(`${path}?limit=500`)
  const byText = (one: { text: string }, two: { text: string }) => (one.text < two.text ? -1 : 1)
  t.same(body.memories.toSorted(byText), [
    { mem_id: kept, text: 'drei', tags: ['y'], author: team.email },
    { mem_id: waiting, text: 'four', tags: [], author: 'ann' },
    { mem_id: other, text: 'two', tags: [], author: team.email },
  ])
  const kinds = body.events.map(({ kind }: { kind: string }) => kind)
  t.same([...new Set(kinds)].sort(), ['add', 'delete', 'edit'])

  const { length: before } = kinds
  await admin.send('DELETE', `/v1/orgs/${team.org}/memories/${kept}?permanent=true`)
  const after = (await admin.get(`${path}?limit=500`)).body
  t.notMatch(JSON.stringify(after), /drei|three/)
  t.equal(after.events.length, before + 1)
  t.match(after.events[0], { mem_id: kept, action: 'delete', kind: null })
})

t.test('200: the history of one memory stays when it is gone', async t => {
  const memories = `/v1/orgs/${team.org}/memories`
  t.match((await admin.get(`${memories}/${id}/audit`)).body, { mem_id: id, count: 6 })
  t.match((await admin.get(`${memories}/${other}/audit`)).body, { count: 1 })
})
