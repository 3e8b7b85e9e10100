import t from 'tap'
import { StoredRetrievalTrail } from '#shared/org/trail/retrieval-trail.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

const backend = await createTestBackend(t)
const team = await buildTeam(backend)
await team.defineRole('some', ['a'])
const key = await team.addMember('ann', ['some'])
const { base } = await startTestApi(t, backend)
const { query } = backend.postgres
const secret = Array.from({ length: 25 }, (_, n) => ({
  text: `secret ${n}`,
  tags: ['b'],
  acquiredAt: n,
}))
await seedTeamMemories(backend, team, [
  { text: 'open' },
  { text: 'allowed', tags: ['a'] },
  { text: 'waiting', reviewed: false, pending: true },
  { text: 'waiting too', tags: ['a'], reviewed: false, pending: true },
  ...secret,
])

const nothing = { request: 'search', returned: [], question: null } as const

const rows = async () =>
  (await query('select * from shared_retrievals where org = $1 order by id', [team.org])).rows

t.test('a question of a member leaves what it was given and what was kept from it', async t => {
  const member = createTestClient(base, key)
  await member.post('/v1/memory/search', { query: 'secret', limit: 5 })
  await member.post('/v1/memory/prepare', {
    messages: [
      { role: 'user', content: 'what was allowed' },
      { role: 'assistant', content: 'nothing' },
      { role: 'user', content: 'tell me a secret' },
    ],
  })
  await backend.retrievals.flush()
  const told = await rows()
  t.equal(told.length, 2, 'one for each request')
  for (const row of told) {
    t.match(row, {
      author: 'ann',
      allowed_tags: ['a'],
      wildcard: false,
      permitted: 2,
      dropped: 25,
    })
    t.equal(row['sample'].length, 20)
    t.match(row['sample'][0], { id: String, tags: ['b'] })
    t.notMatch(JSON.stringify(row), /secret/, 'no words of anybody')
  }
})

t.test('other keys leave nothing', async t => {
  const before = (await rows()).length
  const own = createTestClient(base, await buildKey(backend))
  t.equal((await own.post('/v1/memory/search', { query: 'secret', limit: 5 })).status, 200)
  await backend.retrievals.flush()
  t.equal((await rows()).length, before)
})

t.test('the trail of an organization does not grow without end', async t => {
  const { memberScope } = await resolveCaller(backend, key)
  for (let n = 0; n < 7; n++) {
    for (let i = 0; i < 100; i++) backend.retrievals.record(memberScope!, nothing)
    await backend.retrievals.flush()
  }
  const count = (await rows()).length
  t.ok(count <= 600 && count >= 500, `${count} are kept`)
})

t.test('a database that is away costs the trail and nothing else', async t => {
  const { memberScope } = await resolveCaller(backend, key)
  const warned: unknown[] = []
  const log = { ...backend.log, warn: (fields: unknown) => warned.push(fields) } as never
  const postgres = {
    ...backend.postgres,
    query: () => Promise.reject(new Error('away')),
  }
  const trail = new StoredRetrievalTrail({ ...backend, postgres }, log)
  trail.record(memberScope!, nothing)
  await trail.flush()
  t.match(warned, [{ lost: 1 }])
})
