import t from 'tap'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import {
  readBilledUsage,
  insertStoredMemories,
  readVaultScope,
  type StoredMemoryFixture,
} from '#test/support/checks/stored-memories.ts'
import { raiseEpochOf } from '#test/support/checks/alter.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient()
const scope = await readVaultScope(backend, key)

const day = 24 * 3600 * 1000
const begin = Date.parse('2025-03-01T12:00:00Z')
const rows: StoredMemoryFixture[] = [
  { text: 'Straße nach Zürich gefahren', at: begin, speaker: 'Ada' },
  { text: 'ÜBER den Wolken', at: begin + day },
  { text: 'cost is 5.00$ (net) [a|b]', at: begin + 2 * day, consolidated: true },
  { text: 'three of one moment: a', at: begin + 3 * day },
  { text: 'three of one moment: b', at: begin + 3 * day },
  { text: 'three of one moment: c', at: begin + 3 * day },
  { text: 'reflection four', tier: 2, importance: 4, at: begin + 2 * day, coversFrom: begin },
  { text: 'reflection nine', tier: 2, importance: 9, at: begin + 3 * day, coversFrom: begin + day },
  {
    text: 'reflection nine, later',
    tier: 2,
    importance: 9,
    at: begin + 4 * day,
    coversFrom: begin,
  },
  { text: 'what it means', tier: 3, importance: 6, at: begin + 4 * day, coversFrom: begin },
  { text: 'in a session', at: begin, session: 'trip' },
]
const ids = await insertStoredMemories(backend, scope, rows)
const core = ids.slice(0, 10)
const nearby = { text: 'in another vault', at: begin }
const otherKey = await buildKey(backend)
const otherScope = await readVaultScope(backend, otherKey)
await insertStoredMemories(backend, otherScope, [nearby])

type Item = { memory_id: string; text: string; date: string; tier: number; importance: number }

const rowsOf = async (query: string): Promise<Item[]> =>
  (await readPages<Item>(api, `/v1/memory/list?${query}`)).flat()

const texts = async (query: string): Promise<string[]> =>
  (await api.get(`/v1/memory/list?${query}`)).body.items.map(({ text }: Item) => text)

t.test('200: the core vault and its reflections, newest first, with every field', async t => {
  const { status, body } = await api.get('/v1/memory/list')
  t.equal(status, 200)
  t.match(body, { has_more: false, next_cursor: null })
  t.same(body.tier_counts, { raw: 6, tier2: 3, tier3: 1 })
  t.same(body.items.map((item: Item) => item.memory_id).sort(), core.toSorted())
  const dates = body.items.map(({ date }: Item) => date)
  t.same(dates, dates.toSorted().toReversed())
  t.same(body.items.at(-1), {
    memory_id: ids[0],
    text: 'Straße nach Zürich gefahren',
    date: '2025-03-01T12:00:00.000Z',
    tier: 1,
    importance: null,
    role: 'user',
    origin: 'person',
    token_count: body.items.at(-1).token_count,
    consolidated: false,
    covers: null,
    name: 'Ada',
  })
  t.match(
    body.items.find(({ text }: Item) => text === 'reflection four'),
    {
      tier: 2,
      importance: 4,
      role: 'system',
      covers: { from: '2025-03-01T12:00:00.000Z', to: '2025-03-03T12:00:00.000Z' },
    },
  )
  t.match(
    body.items.find(({ text }: Item) => text.startsWith('cost')),
    { consolidated: true },
  )
})

t.test('200: pages of every size make up the whole list in each order', async t => {
  for (const query of [
    '',
    'order=oldest_first',
    'sort=importance',
    'sort=importance&order=oldest_first',
  ]) {
    const whole = (await rowsOf(`${query}&limit=200`)).map(item => item.memory_id)
    t.equal(new Set(whole).size, 10, query)
    for (const limit of [1, 2, 3, 7, 10]) {
      const paged = await rowsOf(`${query}&limit=${limit}`)
      t.same(
        paged.map(item => item.memory_id),
        whole,
        `${query} by ${limit}`,
      )
    }
  }
  const newest = (await rowsOf('limit=4')).map(item => item.memory_id)
  const oldest = (await rowsOf('limit=4&order=oldest_first')).map(item => item.memory_id)
  t.same(oldest, newest.toReversed())
})

t.test(
  '200: by importance the weightiest come first, or the lightest, equals by time, unrated last',
  async t => {
    t.same(await texts('sort=importance&limit=4'), [
      'reflection nine, later',
      'reflection nine',
      'what it means',
      'reflection four',
    ])
    t.same((await texts('sort=importance&order=oldest_first')).slice(0, 5), [
      'reflection four',
      'what it means',
      'reflection nine',
      'reflection nine, later',
      'Straße nach Zürich gefahren',
    ])
    t.same(await texts('sort=importance&tier=3'), ['what it means'])
    t.equal((await texts('sort=importance&tier=1')).length, 6)
    t.same(await texts('sort=importance&tier=1&min_importance=1'), [])
  },
)

t.test('200: tier and min_importance filter, tier_counts do not follow', async t => {
  const { body } = await api.get('/v1/memory/list?tier=2&limit=1')
  t.equal(body.items.length, 1)
  t.equal(body.has_more, true)
  t.same(body.tier_counts, { raw: 6, tier2: 3, tier3: 1 })
  const second = await api.get(`/v1/memory/list?tier=2&limit=1&cursor=${body.next_cursor}`)
  t.notOk('tier_counts' in second.body, 'only the first page has them')
  t.equal((await texts('tier=1')).length, 6)
  t.same((await texts('min_importance=6')).length, 3)
  t.same(await texts('min_importance=5.5'), await texts('min_importance=6'))
  t.same(
    await texts('min_importance=5.5&sort=importance'),
    await texts('min_importance=6&sort=importance'),
  )
  t.same(await texts('min_importance=7&tier=3'), [])
  t.same((await texts('min_importance=9&sort=importance')).length, 2)
  t.same((await rowsOf('min_importance=4&sort=importance&limit=1')).length, 4)
})

t.test('200: from and to include both ends, and a day counts whole', async t => {
  t.equal((await texts('from=2025-03-02&to=2025-03-03')).length, 3)
  t.equal((await texts('from=2025-03-03T12:00:00Z&to=2025-03-03T12:00:00Z')).length, 2)
  t.equal((await texts('from=2025-03-03T12:00:00&to=2025-03-03T12:00:00')).length, 2, 'UTC')
  t.equal((await texts('from=2025-03-03T14:00:00%2B02:00&to=2025-03-03')).length, 2, 'zones')
  t.equal((await texts('to=2025-03-01')).length, 1)
  t.same(await texts('to=2025-03-01T11:59:59.999'), [])
  t.equal((await texts('from=2025-03-05')).length, 2)
  t.equal((await texts('from=2025-03-04&to=2025-03-04&sort=importance')).length, 4)
  const some = await rowsOf('from=2025-03-02&to=2025-03-04&limit=2')
  t.equal(some.length, 7)
})

t.test(
  '200: search is a piece of the text, in any case and any script, and no pattern',
  async t => {
    t.same(await texts('search=%C3%BCber'), ['ÜBER den Wolken'])
    t.same(await texts('search=STRA%C3%9FE'), ['Straße nach Zürich gefahren'])
    t.same(await texts('search=STRASSE'), ['Straße nach Zürich gefahren'])
    t.same(await texts(`search=${encodeURIComponent('ZÜRİCH')}`), ['Straße nach Zürich gefahren'])
    t.same(await texts(`search=${encodeURIComponent('zürich'.normalize('NFD'))}`), [
      'Straße nach Zürich gefahren',
    ])
    t.same(await texts(`search=${encodeURIComponent('5.00$ (NET) [a|b]')}`), [
      'cost is 5.00$ (net) [a|b]',
    ])
    t.same(await texts('search=5x00'), [])
    t.same(await texts('search=.*'), [])
    t.same(await texts('search=moment&tier=2'), [])
    t.equal((await rowsOf('search=MOMENT&limit=1')).length, 3)
    t.equal((await rowsOf('search=reflection&sort=importance&limit=1')).length, 3)
    t.same(await texts('search=session'), [], 'session memories are not listed')
  },
)

t.test('200: what another process stores meanwhile neither repeats nor hides a row', async t => {
  for (const query of ['order=newest_first', 'order=oldest_first', 'sort=importance']) {
    const client = await newClient()
    const { scope: own } = await client.caller()
    const at = (index: number) => begin + Math.floor(index / 4)
    const first = await insertStoredMemories(
      backend,
      own,
      Array.from({ length: 60 }, (_, index) => ({
        text: `row ${index}`,
        at: at(index),
        ...(index % 3 === 0 && { tier: 2 as const, importance: 1 + (index % 10) }),
      })),
      { vectors: false },
    )
    const found: string[] = []
    let cursor = ''
    for (let page = 0; page < 30; page++) {
      const next = cursor && `&cursor=${cursor}`
      const { body } = await client.get(`/v1/memory/list?${query}&limit=7${next}`)
      found.push(...body.items.map((item: Item) => item.memory_id))
      await insertStoredMemories(
        backend,
        own,
        [3, 30, 57].map(index => ({ text: 'late', at: at(index) })),
        { vectors: false },
      )
      if (!body.has_more) break
      cursor = body.next_cursor
    }
    t.equal(new Set(found).size, found.length, 'nothing twice')
    t.same(
      first.filter(id => !found.includes(id)),
      [],
      'nothing lost',
    )
  }
})

t.test('200: bills the tokens of the rows, and nothing for an empty page', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  await client.get('/v1/memory/list')
  await insertStoredMemories(backend, own, [{ text: 'a few words here', at: begin }])
  const { body } = await client.get('/v1/memory/list')
  t.same(await readBilledUsage(backend, own, 'list'), [
    { tokens: body.items[0].token_count, session: null },
  ])
})

t.test('200: another vault sees nothing of it', async t => {
  const { body } = await createTestClient(base, otherKey).get('/v1/memory/list?limit=200')
  t.same(
    body.items.map(({ text }: Item) => text),
    ['in another vault'],
  )
  t.same(body.tier_counts, { raw: 1, tier2: 0, tier3: 0 })
})

t.test('400: a cursor is good for its own list alone', async t => {
  const { body } = await api.get('/v1/memory/list?limit=2')
  const cursor: string = body.next_cursor
  const other = createTestClient(base, otherKey)
  const asked = (client: TestClient, query: string) => client.get(`/v1/memory/list?cursor=${query}`)
  t.equal((await asked(api, `${cursor}&limit=9`)).status, 200, 'pages may change their size')
  for (const odd of [
    `${cursor}&sort=importance`,
    `${cursor}&order=oldest_first`,
    `${cursor}&tier=1`,
    `${cursor}&min_importance=1`,
    `${cursor}&from=2025-03-01`,
    `${cursor}&to=2025-03-09`,
    `${cursor}&search=a`,
    `${cursor}x`,
    cursor.replace('.', ''),
    'nonsense',
  ]) {
    t.match(await asked(api, odd), { status: 400, body: { error: /cursor/ } }, odd)
  }
  t.equal((await asked(other, cursor)).status, 400, 'of another vault')
  for (let bit = 0; bit < cursor.length; bit += 5) {
    const changed = cursor[bit] === 'A' ? 'B' : 'A'
    const tampered = cursor.slice(0, bit) + changed + cursor.slice(bit + 1)
    if (tampered !== cursor) t.equal((await asked(api, tampered)).status, 400, `character ${bit}`)
  }
})

t.test('400: a cursor of the vault before it was cleared', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  await insertStoredMemories(backend, own, [
    { text: 'one', at: begin },
    { text: 'two', at: begin },
  ])
  const { body } = await client.get('/v1/memory/list?limit=1')
  await raiseEpochOf(backend, own.vault)
  t.equal((await client.get(`/v1/memory/list?limit=1&cursor=${body.next_cursor}`)).status, 400)
  t.same((await client.get('/v1/memory/list')).body.items, [], 'and the rows are gone')
})

t.test('400: a date that is none, a span that ends before it begins', async t => {
  for (const [query, message] of [
    ['to=2025-02-30', /to/],
    ['from=2025-03-02&to=2025-03-01', /from lies after to/],
  ] as const) {
    t.match(await api.get(`/v1/memory/list?${query}`), { status: 400, body: { error: message } })
  }
})
