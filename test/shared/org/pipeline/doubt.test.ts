import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

const { backend, base, newTeam, model } = await startTeamService(t)

const foundBy = async (key: string, query: string): Promise<string> => {
  const { body } = await createTestClient(base, key).post('/v1/memory/search', { query, limit: 20 })
  return JSON.stringify(body)
}
const preparedFor = async (key: string, query: string): Promise<string> => {
  const messages = [{ role: 'user', content: query }]
  const { body } = await createTestClient(base, key).post('/v1/memory/prepare', { messages })
  return JSON.stringify(body)
}
const queueOf = async (acme: WorkingTeam) =>
  (await acme.admin.get(`/v1/orgs/${acme.org}/memories/review`)).body.review

t.test('a correction of reviewed memory is seen by no member before it is decided', async t => {
  const acme = await newTeam()
  const zed = await acme.addMember('zed@example.com')
  await seedTeamMemories(backend, acme, [{ text: 'support phone: 100' }])
  await acme.share('Fact: support phone: 200')
  t.match(await foundBy(zed, 'support phone'), /support phone: 100/)
  t.notMatch(await foundBy(zed, 'support phone'), /phone: 200/)
  const [item] = await queueOf(acme)
  t.match(item, { text: 'support phone: 200', pending: true, replaces: { text: /100/ } })
  const listed = await acme.admin.get(`/v1/orgs/${acme.org}/memories`)
  t.equal(listed.body.items.length, 1)
  const path = `/v1/orgs/${acme.org}/memories/${item.mem_id}/review`
  t.match(await acme.admin.post(path, { action: 'approve' }), {
    status: 200,
    body: { pending: false, reviewed: true },
  })
  t.match(await foundBy(zed, 'support phone'), /support phone: 200/)
  t.notMatch(await foundBy(zed, 'support phone'), /phone: 100/)

  t.match(await acme.admin.post(`${path}/undo`), { status: 200, body: { pending: true } })
  t.notMatch(await foundBy(zed, 'support phone'), /phone: 200/)
  t.match(await foundBy(zed, 'support phone'), /support phone: 100/)
  t.match(await acme.admin.post(path, { action: 'reject' }), { status: 200 })
  t.same(await queueOf(acme), [])
  t.notMatch(await foundBy(zed, 'support phone'), /phone: 200/)
})

t.test('until a correction is decided its author alone has it, as their own words', async t => {
  const acme = await newTeam()
  const zed = await acme.addMember('zed@example.com')
  await seedTeamMemories(backend, acme, [{ text: 'support phone: 100' }])
  await acme.share('Fact: support phone: 200')
  const rowsOf = async (key: string): Promise<{ content: string; source: string }[]> => {
    const question = { query: 'support phone', limit: 20 }
    return (await createTestClient(base, key).post('/v1/memory/search', question)).body.memories
  }
  const corrections = async (key: string) =>
    (await rowsOf(key)).filter(({ content }) => content.includes('phone: 200'))
  await waitUntil('it is remembered', async () => (await corrections(acme.key)).length > 0)
  t.notOk((await corrections(acme.key)).some(({ source }) => source === 'org'))
  t.match(
    await foundBy(acme.key, 'support phone'),
    /support phone: 100/,
    'beside what the team has',
  )
  t.match(await preparedFor(acme.key, 'What is the support phone?'), /phone: 200/)
  t.same(await corrections(zed), [])
  t.notMatch(await preparedFor(zed, 'What is the support phone?'), /phone: 200/)

  // Statements whose memory is not seen are listed at multiples of five minutes.
  await ageRows(backend, 'shared_statements', '10 minutes')
  const shares = async (key: string) =>
    (await createTestClient(base, key).get('/v1/shares')).body.items
  t.match(await shares(acme.key), [{ text: 'support phone: 200', visible: false, mem_id: null }])
  t.same(await shares(zed), [])
})

t.test('an untagged fact of a sensitive kind waits; other untagged facts are open', async t => {
  const acme = await newTeam(['finance'])
  const zed = await acme.addMember('zed@example.com')
  await acme.share('Fact: salaries: of the whole team are 5\nFact: kitchen: third floor')
  t.match(await queueOf(acme), [{ text: /salaries/, pending: true, tags: [] }])
  t.notMatch(await foundBy(zed, 'salaries of the team'), /of the whole team/)
  t.match(await foundBy(zed, 'kitchen floor'), /third floor/)
})

t.test('a fact does not disappear into a memory that fewer may see', async t => {
  const acme = await newTeam(['finance'])
  await seedTeamMemories(backend, acme, [
    { text: 'fiscal year: ends in March', tags: ['finance'], reviewed: false },
  ])
  const { pass3 } = await acme.share('Fact: fiscal year: ends in March')
  t.match(pass3, [{ action: 'ADD', pending: true }])
  t.match(await queueOf(acme), [{ text: 'fiscal year: ends in March', tags: [], pending: true }])
  t.match((await acme.share('Fact: fiscal year: ends in March')).pass3, [{ action: 'NONE' }])
})

t.test('an open fact changes a narrower memory, and waits to be open itself', async t => {
  const acme = await newTeam(['finance'])
  const zed = await acme.addMember('zed@example.com')
  await seedTeamMemories(backend, acme, [
    { text: 'fiscal year: ends in March', tags: ['finance'], reviewed: false, acquiredAt: 1 },
  ])
  const { pass3 } = await acme.share('Fact: fiscal year: ends in June')
  t.match(pass3, [{ action: 'UPDATE', copy: { text: 'fiscal year: ends in June' } }])
  t.match(await foundBy(acme.key, 'fiscal year'), /ends in June/)
  t.notMatch(await foundBy(acme.key, 'fiscal year'), /ends in March/)
  t.notMatch(await foundBy(zed, 'fiscal year'), /June|March/, 'nothing opens by itself')
  const [item, ...others] = await queueOf(acme)
  t.same(others, [])
  t.match(item, { text: 'fiscal year: ends in June', tags: [], pending: true, replaces: null })
  t.match(item.pass.pass3, [{ action: 'UPDATE', copy: item.mem_id }])
  const { items } = (await acme.admin.get(`/v1/orgs/${acme.org}/memories`)).body
  t.match(items, [{ text: 'fiscal year: ends in June', tags: ['finance'] }])

  const again = await acme.share('Fact: fiscal year: ends in June')
  t.match(again.pass3, [{ action: 'NONE' }], 'said again, it waits once')
  const { body } = await acme.admin.post(`/v1/orgs/${acme.org}/memories/${item.mem_id}/review`, {
    action: 'approve',
  })
  t.match(body, { pending: false, reviewed: true, tags: [] })
  t.match(await foundBy(zed, 'fiscal year'), /ends in June/)
  const after = (await acme.admin.get(`/v1/orgs/${acme.org}/memories`)).body.items
  t.equal(after.length, 2, 'the narrow one stays')
})

t.test('a change of a narrower memory and of an open one needs no copy', async t => {
  const acme = await newTeam(['finance'])
  await seedTeamMemories(backend, acme, [
    { text: 'pipe size: 4', tags: ['finance'], reviewed: false, acquiredAt: 1 },
    { text: 'pipe size: 5', reviewed: false, acquiredAt: 1 },
  ])
  model.scriptAnswers('reconcile', ({ userPrompt }) =>
    JSON.stringify({
      decisions: userPrompt.memories.map(({ memory }: { memory: string }) => ({
        fact: 0,
        action: 'UPDATE',
        memory,
        text: 'pipe size: 6',
      })),
    }),
  )
  const { pass3 } = await acme.share('Fact: pipe size: 6')
  t.match(pass3, [{ action: 'UPDATE', also: [{ text: 'pipe size: 6' }] }])
  t.notOk('copy' in pass3![0]!)
  t.same(await queueOf(acme), [])
})

t.test('taking a statement back takes its copy back, one by one', async t => {
  const acme = await newTeam(['finance'])
  const ada = createTestClient(base, acme.key)
  await seedTeamMemories(backend, acme, [
    { text: 'head count: 80', tags: ['finance'], reviewed: false, acquiredAt: 1 },
  ])
  await acme.share('Fact: head count: 90')
  // What waits is listed some minutes later.
  await ageRows(backend, 'shared_statements', '10 minutes')
  const { items } = (await ada.get('/v1/shares')).body
  t.equal(items.length, 2)
  const waiting = items.find(({ visible }: { visible: boolean }) => !visible)
  t.equal((await ada.send('DELETE', `/v1/shares/${waiting.id}`)).status, 200)
  await waitUntil('nothing waits', async () => (await queueOf(acme)).length === 0)
  t.match(await acme.memories(), [{ text: 'head count: 90', tags: ['finance'] }])
})

t.test('the doubt of the extractor counts; what it does not believe is dropped', async t => {
  const acme = await newTeam()
  const facts = [
    { turn: 0, text: 'The moon is made of cheese', note: false, confidence: 0.01 },
    { turn: 0, text: 'The site may move', note: false, confidence: 0.4 },
  ]
  model.scriptAnswers('extract', JSON.stringify({ facts }))
  await acme.share('We talk about many things')
  t.match(await acme.memories(), [{ text: 'The site may move', confidence: 0.4 }])
  t.match(await queueOf(acme), [{ text: 'The site may move', pending: false }])
})

t.test('a fact that its author may not see is looked at by a person', async t => {
  const acme = await newTeam(['finance'])
  const bob = await acme.addMember('bob@example.com')
  await acme.share('Fact: revenue: 1 #finance', { as: bob })
  t.match(await queueOf(acme), [{ tags: ['finance'], confidence: 0.5, pending: false }])
})

t.test('no clear no: an untagged fact waits for a person', async t => {
  const acme = await newTeam(['finance', 'people'])
  const answered = (t1: number, t2: number) =>
    JSON.stringify({ facts: [{ fact: 0, answers: { t1, t2 } }] })
  model.scriptAnswers('tag', answered(0.3, 0.01), answered(0.1, 0.01))
  await acme.share('Fact: kitchen: third floor')
  t.match(await queueOf(acme), [{ text: 'kitchen: third floor', pending: true, tags: [] }])
  t.ok((await queueOf(acme))[0].confidence < 0.6)
  await acme.share('Fact: parking: behind the house')
  t.equal((await queueOf(acme)).length, 1, 'every answer was a clear no')
})

t.test('an open memory does not turn private by an update', async t => {
  const acme = await newTeam(['finance'])
  const zed = await acme.addMember('zed@example.com')
  await acme.share('Fact: Eve of the sales team: is new')
  await acme.share('Fact: Eve of the sales team: has a salary of 90k')
  t.match(await queueOf(acme), [
    {
      text: 'Eve of the sales team: has a salary of 90k',
      pending: true,
      replaces: { text: /is new/ },
    },
  ])
  t.notMatch(await foundBy(zed, 'Eve salary'), /90k/)
  t.match(await foundBy(zed, 'Eve of sales'), /is new/)
})
