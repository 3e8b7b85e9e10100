import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  readBilledUsage,
  insertStoredMemories,
  readVaultScope,
  type StoredMemoryFixture,
} from '#test/support/checks/stored-memories.ts'
import { clearSessionOf } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, newClient } = await startService(t, {
  env: { EMBEDDINGS: 'local', OPENAI_API_KEY: 'secret', OPENAI_BASE_URL: provider.baseUrl },
})
const { key, ...api } = await newClient()
const scope = await readVaultScope(backend, key)

const day = 24 * 3600 * 1000
const begin = Date.parse('2025-03-01T12:00:00Z')
const rows: StoredMemoryFixture[] = [
  { text: 'Ada the cat hid from the thunder', at: begin, speaker: 'Tom' },
  { text: 'We booked the ferry to Naxos', at: begin + day, role: 'assistant' },
  { text: 'The ferry was late and Ada was seasick', at: begin + 2 * day },
  { text: 'Ada caught her first mouse', at: begin + 40 * day },
  {
    text: 'The family travelled by ferry with the cat',
    tier: 2,
    importance: 6,
    coversFrom: begin,
    at: begin + 2 * day,
  },
  {
    text: 'The cat Ada became a hunter',
    tier: 2,
    importance: 3,
    coversFrom: begin + day,
    at: begin + 40 * day,
  },
  {
    text: 'They care for animals',
    tier: 3,
    importance: 8,
    coversFrom: begin,
    at: begin + 40 * day,
  },
  { text: 'ferry tickets in the session', at: begin + day, session: 'trip' },
]
const ids = await insertStoredMemories(backend, scope, rows)

type Found = {
  id: string
  content: string
  timestamp: string
  score?: number
  relevance?: number
  why?: string[]
  tier: number
}
const ask = (body: object, headers = {}, client: TestClient = api) =>
  client.post('/v1/memory/date-search', body, headers)
const contents = async (body: object, headers = {}): Promise<string[]> =>
  (await ask(body, headers)).body.memories.map(({ content }: Found) => content)

t.test('200: a span of time in order, with every field', async t => {
  const { status, body } = await ask({ from: '2025-03-01', to: '2025-03-02', tiers: [1] })
  t.equal(status, 200)
  const [second, first] = body.memories
  t.same(second, {
    id: ids[1],
    tier: 1,
    role: 'assistant',
    origin: 'model',
    content: 'We booked the ferry to Naxos',
    timestamp: '2025-03-02T12:00:00.000Z',
    source: 'core',
    token_count: second.token_count,
  })
  t.match(first, { id: ids[0], name: 'Tom' })
  const { reflection, memories: _, ...rest } = body
  t.same(rest, {
    from: '2025-03-01T00:00:00.000Z',
    to: '2025-03-02T23:59:59.999Z',
    order: 'newest_first',
    returned: { from: '2025-03-01T12:00:00.000Z', to: '2025-03-02T12:00:00.000Z' },
    truncated: false,
    count: 2,
    token_count: first.token_count + second.token_count,
  })
  t.equal(reflection.unconsolidated.raw.units, 4)
})

t.test('200: oldest first turns it round, and without an end it goes up to now', async t => {
  t.same(await contents({ from: '2025-03-01', tiers: [1], order: 'oldest_first' }), [
    'Ada the cat hid from the thunder',
    'We booked the ferry to Naxos',
    'The ferry was late and Ada was seasick',
    'Ada caught her first mouse',
  ])
  const before = Date.now()
  const { body } = await ask({ from: '2025-03-01' })
  t.ok(Date.parse(body.to) >= before && Date.parse(body.to) <= Date.now(), body.to)
})

t.test('200: nothing there', async t => {
  const { body } = await ask({ from: '2024-01-01', to: '2024-12-31' })
  t.match(body, { memories: [], count: 0, token_count: 0, truncated: false })
  t.same(body.returned, { from: '2024-01-01T00:00:00.000Z', to: '2024-12-31T23:59:59.999Z' })
  const future = (await ask({ from: '2999-01-01' })).body
  t.match(future, { memories: [], returned: { from: '2999-01-01T00:00:00.000Z', to: String } })
})

t.test('200: both ends are included, to the millisecond', async t => {
  const at = '2025-03-02T12:00:00.000Z'
  t.same(await contents({ from: at, to: at, tiers: [1] }), ['We booked the ferry to Naxos'])
  t.same(await contents({ from: '2025-03-02T12:00:00.001Z', to: '2025-03-02', tiers: [1] }), [])
  t.same(await contents({ from: '2025-03-02', to: '2025-03-02T11:59:59.999Z', tiers: [1] }), [])
  const zoned = { from: '2025-03-02T13:00:00+01:00', to: '2025-03-02T12:00:00', tiers: [1] }
  t.same(await contents(zoned), ['We booked the ferry to Naxos'])
})

t.test('200: reflections belong to the period they are about', async t => {
  const { body } = await ask({ from: '2025-03-03', to: '2025-03-20', tiers: [2, 3] })
  t.same(body.memories.map(({ content }: Found) => content).sort(), [
    'The cat Ada became a hunter',
    'The family travelled by ferry with the cat',
    'They care for animals',
  ])
  t.match(
    body.memories.find(({ id }: Found) => id === ids[5]),
    {
      tier: 2,
      importance: 3,
      covers: { from: '2025-03-02T12:00:00.000Z', to: '2025-04-10T12:00:00.000Z' },
    },
  )
  t.same(body.returned, { from: '2025-03-03T00:00:00.000Z', to: '2025-03-20T23:59:59.999Z' })
  t.same(await contents({ from: '2025-04-11', tiers: [2, 3] }), [])
  t.same(await contents({ from: '2025-02-01', to: '2025-03-01', tiers: [2] }), [
    'The family travelled by ferry with the cat',
  ])
})

t.test('200: importance leaves the unrated and the lesser out', async t => {
  const span = { from: '2025-03-01', to: '2025-12-31' }
  t.equal((await contents({ ...span, importance: 1 })).length, 3)
  t.same(await contents({ ...span, importance: 7 }), ['They care for animals'])
  t.same(await contents({ ...span, importance: 1, tiers: [1] }), [])
  t.same(await contents({ ...span, importance: 7, query: 'animals' }), ['They care for animals'])
})

t.test('200: with a query the best come first, and only those of the span', async t => {
  const span = { from: '2025-03-01', to: '2025-03-03' }
  const { body } = await ask({ ...span, query: 'ferry', tiers: [1] })
  const found: Found[] = body.memories
  t.ok(found.slice(0, 2).every(({ content }) => content.includes('ferry')))
  t.notOk(found.some(({ content }) => content.includes('mouse')))
  t.ok(found.every(({ score }) => typeof score === 'number'))
  t.ok(found.every(({ why = [] }) => why.length > 0))
  const relevances = found.map(({ relevance }) => relevance!)
  t.same(
    relevances,
    relevances.toSorted((one, other) => other - one),
    'as they are ranked',
  )
  const all = await ask({ from: '2025-03-01', query: 'ferry with the cat' })
  t.match(all.body.memories[0], {
    id: ids[4],
    tier: 2,
    importance: 6,
    timestamp: '2025-03-03T12:00:00.000Z',
    covers: { from: '2025-03-01T12:00:00.000Z', to: '2025-03-03T12:00:00.000Z' },
  })
  const within = await ask({ from: '2025-03-10', to: '2025-03-12', query: 'Ada the hunter' })
  t.match(within.body.memories[0], { id: ids[5], timestamp: '2025-04-10T12:00:00.000Z' })
  t.notOk(within.body.memories.some(({ tier }: Found) => tier === 1))
})

t.test('200: a query finds what another process has stored meanwhile', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const elsewhere = await startTestApi(t, second, key)
  const asked = { from: '2025-08-01', to: '2025-08-31', query: 'lighthouse' }
  t.same((await ask(asked, {}, elsewhere)).body.memories, [])
  await insertStoredMemories(backend, scope, [
    { text: 'We painted the lighthouse', at: Date.parse('2025-08-08T08:00:00Z') },
  ])
  t.match((await ask(asked, {}, elsewhere)).body.memories, [{ content: /lighthouse/ }])
})

t.test('200: a session is a space of its own', async t => {
  const span = { from: '2025-03-01', to: '2025-03-31' }
  const headers = { 'x-session-id': 'trip' }
  for (const query of [undefined, 'tickets']) {
    const { body } = await ask({ ...span, ...(query && { query }) }, headers)
    t.match(body.memories, [{ content: 'ferry tickets in the session', source: 'session' }])
    t.equal(body.count, 1)
  }
  t.notOk((await contents(span)).some(text => text.includes('session')))
  await clearSessionOf(backend, scope.vault, 'trip')
  t.same(await contents(span, headers), [], 'until it is cleared')
})

t.test('200: an answer over the budget is cut, and goes on from where it ends', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  await insertStoredMemories(
    backend,
    own,
    Array.from({ length: 50 }, (_, index) => ({
      text: `line ${index} of a few moments`,
      at: begin + Math.floor(index / 6),
      tokens: 240,
    })),
  )
  const asDate = (time: string) => new Date(time).toISOString()
  const asMicroseconds = (time: string) => time.replace('Z', '000+00:00')
  for (const keep of [(time: string) => time, asDate, asMicroseconds]) {
    for (const order of ['newest_first', 'oldest_first'] as const) {
      const found: Found[] = []
      let span = { from: '2025-03-01', to: '2025-03-01' }
      let pages = 1
      for (; pages < 50; pages++) {
        const { body } = await ask({ ...span, order, max_tokens: 1_000 }, {}, client)
        found.push(...body.memories)
        if (!body.truncated) break
        t.ok(body.token_count > 1_000, 'what is left of one millisecond exceeds the budget')
        t.ok(body.count <= 10)
        span =
          order === 'oldest_first'
            ? { ...span, from: keep(body.returned.to) }
            : { ...span, to: keep(body.returned.from) }
      }
      t.ok(pages > 5)
      const lines = found.map(({ content }) => Number(content.split(' ')[1]))
      const expected = Array.from({ length: 50 }, (_, index) => index)
      t.same(lines, order === 'oldest_first' ? expected : expected.toReversed())
    }
  }
})

t.test('200: the budget is brought between 1,000 and 200,000; one row always fits', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const tokens = [700, 300, 5_000, 196_000, 4_001]
  await insertStoredMemories(
    backend,
    own,
    tokens.map((count, index) => ({ text: `row ${index}`, at: begin + index, tokens: count })),
  )
  const asked = async (max_tokens: number, from = '2025-03-01', query?: string) => {
    const body = { from, to: '2025-03-01', order: 'oldest_first', max_tokens }
    return (await ask({ ...body, ...(query && { query }) }, {}, client)).body
  }
  t.match(await asked(-5), { count: 2, truncated: true, token_count: 1_000 })
  t.match(await asked(1), { count: 2, truncated: true, token_count: 1_000 })
  t.match(await asked(5_999), { count: 2, truncated: true })
  t.match(await asked(6_000), { count: 3, truncated: true, token_count: 6_000 })
  t.match(await asked(1, new Date(begin + 2).toISOString()), { count: 1, token_count: 5_000 })
  t.match(await asked(1e9, new Date(begin + 3).toISOString()), { count: 1, token_count: 196_000 })
  t.match(await asked(1, '2025-03-01', 'row'), { truncated: true })
})

t.test('200: ranked pages hold every match once, in both orders, with any budget', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const matching = await insertStoredMemories(
    backend,
    own,
    Array.from({ length: 60 }, (_, index) => ({
      text: index % 7 === 0 ? 'the comet was seen' : `the comet was seen again, night ${index}`,
      at: begin + index * 60_000,
      tokens: 90,
    })),
  )
  await insertStoredMemories(
    backend,
    own,
    Array.from({ length: 20 }, (_, n) => ({ text: `bread and milk ${n}`, at: begin + n * 99_000 })),
  )
  const newest = new Date(begin + 59 * 60_000).toISOString()
  for (const order of ['newest_first', 'oldest_first']) {
    for (const max_tokens of [1_000, 2_500, 200_000]) {
      const found: string[] = []
      let [from, to] = ['2025-03-01T12:00:00Z', newest]
      for (let page = 0; page < 50; page++) {
        const asked = { from, to, query: 'the comet', max_tokens, order, tiers: [1] }
        const { status, body } = await ask(asked, {}, client)
        t.equal(status, 200)
        const rows: Found[] = body.memories
        t.ok(rows.every((row, n) => n === 0 || row.score! <= rows[n - 1]!.score!))
        found.push(...rows.map(({ id }) => id))
        // As a client does that always asks once more.
        if (rows.length === 0) break
        if (order === 'newest_first') to = body.truncated ? body.returned.from : before(from)
        else from = body.truncated ? body.returned.to : after(to)
      }
      t.same(found.toSorted(), matching.toSorted(), `${order}, ${max_tokens}`)
    }
  }
})
const before = (time: string): string => new Date(Date.parse(time) - 1).toISOString()
const after = (time: string): string => new Date(Date.parse(time) + 1).toISOString()

t.test('200: X-Embedding-Model names the space, in order and ranked', async t => {
  const client = await newClient()
  const headers = { 'x-embedding-model': 'openai/text-embedding-3-small' }
  const say = (content: string, more = {}) =>
    client.post(
      '/v1/memory/ingest?wait=true',
      { messages: [{ role: 'user', content, timestamp: begin }] },
      more,
    )
  await say('only in the default space')
  await say('only in the other space', headers)
  const span = { from: '2025-03-01', to: '2025-03-01' }
  t.equal((await ask(span, {}, client)).body.count, 2, 'without a model all of them')
  t.match((await ask(span, headers, client)).body.memories, [{ content: /other/ }])
  t.match((await ask({ ...span, query: 'space' }, headers, client)).body.memories, [
    { content: /other/ },
  ])
  const odd = { 'x-embedding-model': 'nobody/knows' }
  t.equal((await ask(span, odd, client)).status, 400)
  t.equal((await ask({ ...span, query: 'x' }, odd, client)).status, 400)
})

t.test('200: a vault too large for an image is ranked where it is stored', async t => {
  const small = await createTestBackend(t, {
    config: { ...backend.config, vaultIndexCacheBytes: 1 },
  })
  const cramped = await startTestApi(t, small, key)
  const asked = { from: '2025-03-01', to: '2025-03-03', query: 'ferry' }
  const there = (await ask(asked, {}, cramped)).body.memories
  const here = (await ask(asked)).body.memories
  t.ok(here.length > 0)
  t.same(there.map(({ id }: Found) => id).sort(), here.map(({ id }: Found) => id).sort())
})

t.test('200: bills the tokens of the rows, and nothing for an empty span', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  await insertStoredMemories(backend, own, [{ text: 'some words to pay for', at: begin }])
  await ask({ from: '2024-03-01', to: '2024-03-01' }, {}, client)
  const { body } = await ask({ from: '2025-03-01' }, {}, client)
  t.same(await readBilledUsage(backend, own, 'date-search'), [
    { tokens: body.token_count, session: null },
  ])
})

t.test('200: another vault sees nothing of it', async t => {
  const stranger = await newClient()
  const { body } = await ask({ from: '2025-03-01', query: 'ferry' }, {}, stranger)
  t.same(body.memories, [])
  t.same((await ask({ from: '2000-01-01' }, {}, stranger)).body.memories, [])
})

t.test('400: a date that is none, a span that ends before it begins', async t => {
  const from = '2025-03-01'
  for (const [body, message] of [
    [{ from: '2025-13-01' }, /from/],
    [{ from, to: '2025-02-28' }, /from lies after to/],
  ] as const) {
    t.match(await ask(body), { status: 400, body: { error: message } }, JSON.stringify(body))
  }
})

t.test('502: the model of a query does not answer', async t => {
  const headers = { 'x-embedding-model': 'openai/text-embedding-3-small' }
  provider.fail(401, 1)
  const asked = { from: '2025-03-01', query: `never asked ${mintId()}` }
  t.match(await ask(asked, headers), { status: 502, body: { error: /refused \(status 401\)/ } })
})
