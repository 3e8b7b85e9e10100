import t from 'tap'
import { findDeniedMemories } from '#shared/org/trail/denied-memories.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { ageRows } from '#test/support/checks/alter.ts'

const backend = await createTestBackend(t)
const team = await buildTeam(backend)
await team.defineRole('some', ['launch'])
await team.defineRole('all', ['*'])
const ann = await team.addMember('ann', ['some'])
const boss = await team.addMember('boss', ['all'])
const { base } = await startTestApi(t, backend)
const admin = createTestClient(base, team.adminKey)
const { query } = backend.postgres
const [open, launch, salary] = await seedTeamMemories(backend, team, [
  { text: 'The parrot of the office is green' },
  { text: 'The rocket launches on the fifth of May', tags: ['launch'] },
  { text: 'The salary of Eve is 90 thousand', tags: ['people'] },
])

type Trail = Record<string, unknown>

const trails = async (author: string): Promise<Trail[]> =>
  (await admin.get(`/v1/orgs/${team.org}/debug/passes?author=${author}`)).body.passes
const ask = (key: string, words: string) =>
  createTestClient(base, key).post('/v1/memory/search', { query: words, limit: 1 })

t.test('what a request was given at once, what it was denied a minute later', async t => {
  await ask(ann, 'What is the salary of Eve?')
  await ask(ann, 'Which colour has the parrot of the office?')
  const [parrot, pay] = await trails('ann')
  t.match(parrot, { request: 'search', returned: 1, returned_ids: [open], denied: null })
  t.match(pay, { request: 'search', denied: null, denied_memories: null })

  t.equal(await findDeniedMemories(backend), 2)
  const [later, asked] = await trails('ann')
  t.match(asked, { denied: 1, denied_memories: [{ mem_id: salary, tags: ['people'] }] })
  t.match(later, { denied: 0, denied_memories: [] }, 'another question, another answer')
  t.match(later, { permitted: 2, dropped: 1 }, 'beside the counts of all')
  const { body } = await admin.get(`/v1/orgs/${team.org}/debug/passes?author=ann`)
  const named = new Map(body.memories.map(({ mem_id, ...one }: Trail) => [mem_id, one]))
  t.equal(body.memories.length, 2, 'what was given and what was kept back, each once')
  t.match(named.get(open), { text: 'The parrot of the office is green', tags: [] })
  t.match(named.get(salary), { text: 'The salary of Eve is 90 thousand', tags: ['people'] })
  t.notMatch(JSON.stringify(body), /What is the salary|Which colour/, 'the question is theirs')
  const { rows } = await query('select question from shared_retrievals where org = $1', [team.org])
  t.same(rows, [{ question: null }, { question: null }], 'the words of the member are gone')
  t.equal(await findDeniedMemories(backend), 0)
})

t.test('the question of one to whom nothing is hidden is not written down', async t => {
  await ask(boss, 'What is the salary of Eve?')
  t.match(await trails('boss'), [{ returned_ids: [salary], denied: 0, denied_memories: [] }])
  const { rows } = await query(
    `select 1 from shared_retrievals where org = $1 and author = 'boss' and question is not null`,
    [team.org],
  )
  t.same(rows, [])
})

t.test('prepared blocks and spans of time', async t => {
  const member = createTestClient(base, ann)
  await member.post('/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'When does the rocket launch?' }],
  })
  await member.post('/v1/memory/date-search', { from: '2000-01-01' })
  t.match(await trails('ann'), [
    { request: 'date-search', returned: 2, denied: null },
    { request: 'prepare', returned_ids: [launch] },
    {},
    {},
  ])
})

/** What the newest request of the member was denied, by the trail. */
async function deniedTo(path: string, body: object): Promise<string[]> {
  const { status } = await createTestClient(base, ann).post(path, body)
  t.equal(status, 200)
  await backend.retrievals.flush()
  t.equal(await findDeniedMemories(backend), 1)
  const [newest] = await trails('ann')
  return (newest!.denied_memories as { mem_id: string }[]).map(({ mem_id }) => mem_id)
}

const isoDay = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)

t.test('a span of time denies what lies in it, also where nothing else does', async t => {
  await findDeniedMemories(backend)
  const [pay] = await seedTeamMemories(backend, team, [
    {
      text: 'The bonus of Bob was 7 thousand',
      tags: ['people'],
      acquiredAt: Date.parse('2020-05-05'),
    },
  ])
  const ask = (query: string, from: string, to: string) =>
    deniedTo('/v1/memory/date-search', { query, from, to })
  t.same(await ask('bonus of Bob', '2020-01-01', '2020-12-31'), [pay])
  t.same(await ask('bonus of Bob', '2021-01-01', '2021-12-31'), [])
  t.same(await ask('salary of Eve', '2020-01-01', '2020-12-31'), [])
  t.same(await ask('salary of Eve', isoDay(-2), isoDay(1)), [salary])
  t.same(
    await deniedTo('/v1/memory/date-search', {
      query: 'salary of Eve',
      from: isoDay(-2),
      tiers: [2, 3],
    }),
    [],
  )
})

t.test('filters deny what they leave in', async t => {
  const asked = 'What is the salary of Eve?'
  const messages = [{ role: 'user', content: asked }]
  const requests = {
    '/v1/memory/search': { query: asked, limit: 5 },
    '/v1/memory/prepare': { messages },
  }
  for (const [path, body] of Object.entries(requests)) {
    t.same(await deniedTo(path, body), [salary], path)
    t.same(await deniedTo(path, { ...body, tiers: [1] }), [salary])
    t.same(await deniedTo(path, { ...body, as_of: isoDay(0) }), [salary])
    for (const filter of [
      { tiers: [2, 3] },
      { importance: 5 },
      { as_of: '2020-01-01' },
      { metadata: { topic: 'pay' } },
      { min_relevance: 1 },
    ])
      t.same(await deniedTo(path, { ...body, ...filter }), [], `${path} ${JSON.stringify(filter)}`)
  }
})

t.test('a question that no worker has looked at for ten minutes is forgotten', async t => {
  await ask(ann, 'What is the salary of Eve?')
  await backend.retrievals.flush()
  await ageRows(backend, 'shared_retrievals', '11 minutes', { org: team.org })
  t.equal(await findDeniedMemories(backend), 0)
  const { rows } = await query(
    'select 1 from shared_retrievals where org = $1 and question is not null',
    [team.org],
  )
  t.same(rows, [])
})
