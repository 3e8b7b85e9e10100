import t from 'tap'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)

const day = 86_400_000
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()

/** A vault of two moves, with a reflection of the first half and one of all. */
async function movedTwice(): Promise<{ client: TestClient; ids: string[] }> {
  const key = await buildKey(backend)
  const ids = await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'My flat is in Lisbon.', at: begin },
    { text: 'My flat is in Porto now.', at: begin + 10 * day },
    { text: 'My flat is in Braga now.', at: begin + 20 * day },
    {
      text: 'The flat moved north.',
      tier: 2,
      importance: 6,
      coversFrom: begin,
      at: begin + 10 * day,
    },
    {
      text: 'The flat went all over the country.',
      tier: 2,
      importance: 7,
      coversFrom: begin,
      at: begin + 20 * day,
    },
    { text: 'The flat of the trip is in Faro.', at: begin + 5 * day, session: 'trip' },
    { text: 'The flat of the trip is in Tavira.', at: begin + 15 * day, session: 'trip' },
  ])
  return { client: createTestClient(base, key), ids }
}

type Row = { content?: string; text?: string; window?: string }
const texts = (rows: Row[]): string[] =>
  rows.map(({ content, text }) => (content ?? text)!).toSorted()
const search = async (client: TestClient, body: object): Promise<Row[]> =>
  (await client.post('/v1/memory/search', { query: 'Where is my flat?', limit: 20, ...body })).body
    .memories

t.test('200: search, prepare, list and date-search show what was known then', async t => {
  const { client } = await movedTwice()
  const known = ['My flat is in Lisbon.', 'My flat is in Porto now.', 'The flat moved north.']
  for (const as_of of [begin + 12 * day, iso(begin + 10 * day), '2025-03-11']) {
    t.same(texts(await search(client, { as_of })), known, `search ${as_of}`)
    const { body: listed } = await client.get(`/v1/memory/list?as_of=${as_of}`)
    t.same(texts(listed.items), known, `list ${as_of}`)
    t.same(listed.tier_counts, { raw: 2, tier2: 1, tier3: 0 })
    for (const query of [undefined, 'Where is my flat?']) {
      const span = { from: '2025-01-01', to: '2025-12-31', as_of, query }
      const { body: dated } = await client.post('/v1/memory/date-search', span)
      t.same(texts(dated.memories), known, `date-search ${as_of} ${query}`)
      t.ok(dated.to <= iso(begin + 12 * day))
    }
    const messages = [{ role: 'user', content: 'Where is my flat?' }]
    const { body: block } = await client.post('/v1/memory/prepare', { messages, as_of })
    t.match(block.context, 'My flat is in Porto now.')
    t.notMatch(block.context, /Braga|all over/)
  }
  t.comment('without it nothing changes, and before anything was said nothing is known')
  t.equal((await search(client, {})).length, 5)
  t.same(await search(client, { as_of: begin - 1 }), [])
  const { body: empty } = await client.get(`/v1/memory/list?as_of=${begin - 1}`)
  t.match(empty, { items: [], tier_counts: { raw: 0, tier2: 0, tier3: 0 } })
})

t.test('200: the moment counts as now', async t => {
  const { client } = await movedTwice()
  const rows = await search(client, { as_of: iso(begin + 10 * day + 60_000) })
  t.equal(rows.find(({ content }) => content === 'My flat is in Porto now.')!.window, 'hot')
  const ask = { query: 'What did I say about my flat yesterday?', limit: 1, tiers: [1] }
  for (const [days, text] of [
    [1, 'My flat is in Lisbon.'],
    [11, 'My flat is in Porto now.'],
  ] as const) {
    t.same(texts(await search(client, { ...ask, as_of: begin + days * day })), [text])
  }
})

t.test('200: a session is read as of a moment, too', async t => {
  const { client } = await movedTwice()
  const as_of = begin + 6 * day
  const found = await search(client, { as_of, session_id: 'trip' })
  t.same(texts(found), ['The flat of the trip is in Faro.'])
  const messages = [{ role: 'user', content: 'Where is the flat of the trip?' }]
  const { body } = await client.post('/v1/memory/prepare', { messages, as_of, session_id: 'trip' })
  t.match(body.context, /Faro/)
  t.notMatch(body.context, /Tavira|Porto/)
})

t.test('200: pages of a list stay within the moment', async t => {
  const { client } = await movedTwice()
  for (const filters of [
    '',
    '&order=oldest_first',
    '&sort=importance',
    '&search=flat',
    `&to=${iso(begin + 30 * day)}`,
  ]) {
    const first = `/v1/memory/list?limit=1&as_of=${begin + 10 * day}${filters}`
    t.same(
      texts((await readPages<Row>(client, first)).flat()),
      ['My flat is in Lisbon.', 'My flat is in Porto now.', 'The flat moved north.'],
      filters,
    )
  }
  const { body } = await client.get(`/v1/memory/list?limit=1&as_of=${begin + 10 * day}`)
  const other = await client.get(
    `/v1/memory/list?limit=1&as_of=${begin + 20 * day}&cursor=${body.next_cursor}`,
  )
  t.match(other, { status: 400, body: { error: /cursor is not one of this list/ } })
})

t.test('200: a span goes on page by page, and its reflections are those known then', async t => {
  const { client } = await movedTwice()
  const span = { from: '2025-01-01', to: iso(begin + 5 * day), as_of: iso(begin + 12 * day) }
  const { body } = await client.post('/v1/memory/date-search', span)
  t.same(texts(body.memories), ['My flat is in Lisbon.', 'The flat moved north.'])
  const { body: all } = await client.post('/v1/memory/date-search', { ...span, as_of: undefined })
  t.equal(all.count, 3, 'the reflection of the whole time overlaps the span as well')
})

t.test('what is deleted today was not known then either', async t => {
  const { client, ids } = await movedTwice()
  t.equal((await client.post('/v1/memory/delete-ids', { ids: [ids[0]] })).status, 200)
  const as_of = begin + 5 * day
  t.same(await search(client, { as_of }), [])
  t.same((await client.get(`/v1/memory/list?as_of=${as_of}`)).body.items, [])
})

t.test('a member sees the shared memory of that moment, as far as roles allow', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('Money', ['finance'])
  const [plain, trusted] = [await team.addMember('ann'), await team.addMember('ben', ['Money'])]
  await seedTeamMemories(backend, team, [
    { text: 'The office flat is in Ghent.', acquiredAt: begin },
    { text: 'The office flat is in Bruges.', acquiredAt: begin + 10 * day },
    { text: 'The office flat costs 900 a month.', tags: ['finance'], acquiredAt: begin },
  ])
  const as_of = begin + day
  const asked = { query: 'office flat', as_of }
  t.same(texts(await search(createTestClient(base, plain), asked)), [
    'The office flat is in Ghent.',
  ])
  t.same(texts(await search(createTestClient(base, trusted), asked)), [
    'The office flat costs 900 a month.',
    'The office flat is in Ghent.',
  ])
})

t.test('400: spans that begin after the moment', async t => {
  const { client } = await movedTwice()
  const later = iso(begin + day)
  for (const { status, body } of [
    await client.post('/v1/memory/date-search', { from: later, as_of: iso(begin) }),
    await client.post('/v1/memory/date-search', { from: later, to: '2026-01-01', as_of: begin }),
    await client.get(`/v1/memory/list?from=${later}&as_of=${begin}`),
  ]) {
    t.match({ status, body }, { status: 400, body: { error: 'from lies after as_of' } })
    t.match(body.hint, /an earlier from, or a later as_of/)
  }
})
