import t from 'tap'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { exportLines, importFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

/** What its owner calls wrong is told no more, in every process, and kept; `right` tells it again. */

const { backend, base, newClient } = await startService(t)
const second = await createTestBackend(t, { config: backend.config })
const { base: other } = await startTestApi(t, second)

const wrong = 'My cellar key hangs behind the clock.'
const bicycle = 'My bicycle stands in the yard.'
const question = 'Where does my cellar key hang?'

type Client = Awaited<ReturnType<typeof newClient>>

/** Everything that tells a model or a program of memories, on both processes. */
async function toldBy({ key, ...api }: Client, text: string): Promise<string[]> {
  const elsewhere = createTestClient(other, key)
  const told: string[] = []
  for (const [where, client] of Object.entries({ here: api, elsewhere })) {
    const messages = [{ role: 'user', content: question }]
    const answers = {
      search: await client.post('/v1/memory/search', { query: question, limit: 9 }),
      prepare: await client.post('/v1/memory/prepare', { messages }),
      dates: await client.post('/v1/memory/date-search', { from: '2020-01-01' }),
      'dates by query': await client.post('/v1/memory/date-search', {
        from: '2020-01-01',
        query: question,
      }),
      profile: await client.get('/v1/memory/profile'),
    }
    for (const [name, { status, body }] of Object.entries(answers)) {
      t.equal(status, 200, name)
      if (JSON.stringify(body).includes(text)) told.push(`${where}: ${name}`)
    }
  }
  return told
}

const everywhere = ['here', 'elsewhere'].flatMap(where =>
  ['search', 'prepare', 'dates', 'dates by query', 'profile'].map(name => `${where}: ${name}`),
)

for (const feedback of ['wrong', 'outdated', 'not_mine'] as const) {
  t.test(`200: ${feedback} is told no more, and kept; right tells it again`, async t => {
    const client = await newClient()
    const name = 'My name is Ada.'
    const [id, copy] = await insertMemories(backend, client.key, [
      { text: name },
      { text: name },
      { text: wrong },
      { text: bicycle },
    ])
    t.same(
      await toldBy(client, 'behind the clock'),
      everywhere.filter(one => !/profile/.test(one)),
    )
    t.ok((await toldBy(client, 'Ada')).some(one => /profile/.test(one)))
    const given = await client.post(`/v1/memory/${id}/feedback`, { feedback })
    t.match(given, { status: 200, body: { feedback, count: 2, dry_run: false, has_more: false } })
    t.same(given.body.ids.toSorted(), [id, copy].toSorted(), 'with its copy')
    t.same(await toldBy(client, 'Ada'), [])
    const cellar = (await client.get('/v1/memory/list?search=cellar')).body.items[0].memory_id
    await client.post(`/v1/memory/${cellar.toUpperCase()}/feedback`, { feedback })
    t.same(await toldBy(client, 'behind the clock'), [])
    t.match((await client.get('/v1/memory/stats')).body, {
      memories: 4,
      feedback: { right: 0, wrong: 0, outdated: 0, not_mine: 0, [feedback]: 3 },
    })
    const filter = encodeURIComponent(JSON.stringify({ feedback }))
    const listed = (await client.get(`/v1/memory/list?metadata=${filter}`)).body.items
    t.equal(listed.length, 3)
    t.equal(listed[0].feedback, feedback)
    await client.post(`/v1/memory/${cellar}/feedback`, { feedback: 'right' })
    t.same(
      await toldBy(client, 'behind the clock'),
      everywhere.filter(one => !/profile/.test(one)),
    )
    await client.post('/v1/memory/feedback', { ids: [copy], feedback: 'right' })
    t.ok((await toldBy(client, 'Ada')).some(one => /profile/.test(one)))
  })
}

t.test('one run of a program is taken back in one call, and brought back in one', async t => {
  const { key, ...api } = await newClient()
  const run = { origin: 'program', run_id: 'r-7' }
  await insertMemories(backend, key, [
    { text: wrong },
    { text: 'The parcel lies in the attic.', metadata: run },
    { text: wrong, metadata: run },
  ])
  const search = async (): Promise<string[]> =>
    (
      await api.post('/v1/memory/search', { query: 'cellar key, parcel', limit: 9 })
    ).body.memories.map(({ content }: { content: string }) => content)
  const all = (await search()).toSorted()
  const give = (feedback: string, more: object = {}) =>
    api.post('/v1/memory/feedback', { metadata: { run_id: 'r-7' }, feedback, ...more })
  t.match(await give('wrong', { dry_run: true }), {
    status: 200,
    body: { count: 2, dry_run: true },
  })
  t.same((await search()).toSorted(), all, 'a dry run changes nothing')
  t.match(await give('wrong'), { status: 200, body: { count: 2, has_more: false } })
  t.same(await search(), [wrong], 'the same words of the person stay')
  t.match(await give('wrong'), { body: { count: 0 } }, 'what has it is not given it again')
  t.match(await give('right'), { body: { count: 2 } })
  t.same((await search()).toSorted(), all)
  t.match(await give('right'), { body: { count: 0 } })
})

t.test('an event keeps who said what of which memories', async t => {
  const { key, ...api } = await newClient()
  const [id] = await insertMemories(backend, key, [{ text: wrong }])
  await api.post(`/v1/memory/${id}/feedback`, { feedback: 'wrong' })
  const { items } = (await api.get('/v1/account/events?action=feedback.given')).body
  t.match(items, [{ after: { feedback: 'wrong', memories: [id] }, before: null }])
  t.equal(items[0].actor, items[0].subject)
  t.notMatch(JSON.stringify(items), 'cellar')
})

t.test('it is in no batch, and the debt is that of the others', async t => {
  const { key, ...api } = await newClient()
  const [first, last] = await insertMemories(backend, key, [{ text: wrong }, { text: bicycle }])
  const debt = async () =>
    (await api.post('/v1/memory/search', { query: 'key', limit: 9 })).body.reflection
  const give = (feedback: string) => api.post(`/v1/memory/${first}/feedback`, { feedback })
  const both = await debt()
  await give('wrong')
  const one = await debt()
  t.not(JSON.stringify(one), JSON.stringify(both))
  const { body: batch } = await api.post('/v1/memory/consolidate/checkout', { tier: 1 })
  t.notMatch(JSON.stringify(batch), 'cellar')
  t.match(JSON.stringify(batch), 'bicycle')
  await give('right')
  t.same(await debt(), both)
  await give('wrong')
  await api.post('/v1/memory/edit', { memory_id: first, text: `${wrong} Or so it was said.` })
  t.same(await debt(), one, 'an edit of it counts nothing')
  await api.post('/v1/memory/delete-ids', { ids: [first] })
  t.same(await debt(), one, 'nor does its deletion')
  await api.post('/v1/memory/delete-ids', { ids: [last] })
  const empty = await newClient()
  t.same(
    await debt(),
    (await empty.post('/v1/memory/search', { query: 'key', limit: 9 })).body.reflection,
  )
})

t.test('an export has it, and an import keeps it told no more', async t => {
  const { key, ...api } = await newClient()
  const [id] = await insertMemories(backend, key, [{ text: wrong }, { text: bicycle }])
  await api.post(`/v1/memory/${id}/feedback`, { feedback: 'wrong' })
  const lines = await exportLines(api)
  t.same(
    lines.map(({ feedback }) => feedback),
    ['wrong', undefined],
  )
  const moved = await newClient()
  t.match(await importFile(moved, lines), { status: 200, body: { imported: 2 } })
  t.same(await toldBy(moved, 'behind the clock'), [])
  const told = await newClient()
  await insertMemories(backend, told.key, [{ text: bicycle }])
  const debtOf = async (client: Client) =>
    (await client.post('/v1/memory/search', { query: 'key', limit: 9 })).body.reflection
  t.same(await debtOf(moved), await debtOf(told))
  t.match((await moved.get('/v1/memory/stats')).body, { memories: 2, feedback: { wrong: 1 } })
})

t.test('400 and 404: what is no feedback, no memory, or both ways of naming them', async t => {
  const { key, ...api } = await newClient()
  const [id] = await insertMemories(backend, key, [{ text: wrong }])
  const foreign = await newClient()
  const statuses = [
    [404, await api.post('/v1/memory/none/feedback', { feedback: 'wrong' })],
    [404, await foreign.post(`/v1/memory/${id}/feedback`, { feedback: 'wrong' })],
    [400, await api.post(`/v1/memory/${id}/feedback`, { feedback: 'bad' })],
    [400, await api.post('/v1/memory/feedback', { feedback: 'wrong' })],
    [
      400,
      await api.post('/v1/memory/feedback', { ids: [id], metadata: { a: 1 }, feedback: 'wrong' }),
    ],
    [400, await api.post('/v1/memory/feedback', { ids: [id], feedback: 'wrong', dryrun: true })],
  ] as const
  for (const [wanted, { status, body }] of statuses) t.equal(status, wanted, JSON.stringify(body))
  const reader = createTestClient(base, `${key}:read`)
  t.equal((await reader.post(`/v1/memory/${id}/feedback`, { feedback: 'wrong' })).status, 403)
  t.match((await api.post('/v1/memory/search', { query: question, limit: 9 })).body.memories, [
    { id },
  ])
})
