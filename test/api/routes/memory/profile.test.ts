import t from 'tap'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'
import type { TestClient } from '#test/support/start/api.ts'

const { backend, base, newClient } = await startService(t)
type Entry = Record<string, unknown> & { kind: string; quote: string; until: string | null }

const day = 86_400_000
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()
const say = async (client: TestClient, content: string, at: number, answer?: string) => {
  const { status } = await client.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'user', content, timestamp: at },
      ...(answer ? [{ role: 'assistant', content: answer, timestamp: at }] : []),
    ],
  })
  t.equal(status, 200)
}
const read = async (client: TestClient, query = ''): Promise<Entry[]> => {
  const { status, body } = await client.get(`/v1/memory/profile${query}`)
  t.equal(status, 200, JSON.stringify(body))
  return body.items
}
const brief = (entries: Entry[]): string[] =>
  entries.map(({ kind, quote, until }) => `${kind}: ${quote}${until ? ' (replaced)' : ''}`)

t.test('a journey: what is said is in the profile, until it is replaced or deleted', async t => {
  const client = await newClient()
  t.same((await client.get('/v1/memory/profile')).body, {
    version: (await client.get('/v1/memory/profile')).body.version,
    text: null,
    text_tokens: 0,
    items: [],
    has_more: false,
    next_cursor: null,
  })
  await say(
    client,
    'Hello! My name is Ada. I live in Porto, it rains a lot.',
    begin,
    'I live in Rome.',
  )
  await say(client, 'From now on, use metric units. What is a mile?', begin + day)
  await say(client, 'My sister is Bea. I prefer window seats.', begin + 2 * day)
  t.same(brief(await read(client)), [
    'instruction: From now on, use metric units.',
    'name: My name is Ada.',
    'place: I live in Porto, it rains a lot.',
    'person: My sister is Bea.',
    'preference: I prefer window seats.',
  ])
  await say(client, 'Big news: we moved from Porto to Lisbon.', begin + 9 * day)
  const moved = await read(client, '?kinds=place,change')
  t.same(brief(moved), [
    'place: Big news: we moved from Porto to Lisbon.',
    'place: I live in Porto, it rains a lot. (replaced)',
    'change: Big news: we moved from Porto to Lisbon.',
  ])
  t.match(moved[1], {
    since: iso(begin),
    until: iso(begin + 9 * day),
    replaced_by: moved[0]!.memory_id,
    source: 'core',
  })
  t.same(brief(await read(client, `?kinds=place&as_of=${begin + 8 * day}`)), [
    'place: I live in Porto, it rains a lot.',
  ])
  t.equal((await read(client, '?current=true&kinds=place')).length, 1)

  t.comment('what is deleted is gone, and what it replaced holds again')
  const ids = [moved[0]!.memory_id]
  t.equal((await client.post('/v1/memory/delete-ids', { ids })).status, 200)
  t.same(brief(await read(client, '?kinds=place,change')), [
    'place: I live in Porto, it rains a lot.',
  ])
  t.comment('an edit counts from its text')
  const [name] = await read(client, '?kinds=name')
  const edit = { memory_id: name!.memory_id, text: 'My name is Adele.' }
  t.equal((await client.post('/v1/memory/edit', edit)).status, 200)
  t.same(brief(await read(client, '?kinds=name,place')), ['name: My name is Adele.'])
  t.equal((await client.send('DELETE', '/v1/memory', {})).status < 300, true)
  t.same(await read(client), [])
})

t.test('the answer is the same byte for byte until a statement changes', async t => {
  const { key, ...client } = await newClient()
  const fetchProfile = async (headers: Record<string, string> = {}) => {
    const response = await fetch(`${base}/v1/memory/profile`, {
      headers: { authorization: `Bearer ${key}`, ...headers },
    })
    return { response, bytes: await response.text(), etag: response.headers.get('etag')! }
  }
  await say(client, 'Always answer in French. I work at Siemens.', begin)
  const first = await fetchProfile()
  t.match(
    JSON.parse(first.bytes).text,
    /^<memory_profile>\nWhat the user .*\nStanding instructions:\n- Always answer in French\. \(2025-03-01\)\n[^]*<\/memory_profile>$/,
  )
  t.equal(first.etag, `"${JSON.parse(first.bytes).version}"`)
  await say(client, 'The weather is fine. I work at Siemens.', begin + day, 'Good to know!')
  await client.post('/v1/memory/search', { query: 'weather', limit: 1 })
  const second = await fetchProfile()
  t.equal(second.bytes, first.bytes, 'small talk and repetition change nothing')
  const unchanged = await fetchProfile({ 'if-none-match': first.etag })
  t.match(unchanged, { response: { status: 304 }, bytes: '', etag: first.etag })
  await say(client, 'I work at Bosch now.', begin + 2 * day)
  const third = await fetchProfile({ 'if-none-match': first.etag })
  t.equal(third.response.status, 200)
  t.not(third.etag, first.etag)
  t.same(brief(JSON.parse(third.bytes).items), [
    'instruction: Always answer in French.',
    'role: I work at Bosch now.',
    'role: I work at Siemens. (replaced)',
  ])
})

t.test('pages of any size give every entry once, in one order', async t => {
  const client = await newClient()
  for (let n = 0; n < 12; n++) await say(client, `I love project number ${n}.`, begin + n * day)
  const all = await read(client)
  t.equal(all.length, 12)
  t.equal(all[0]!.quote, 'I love project number 11.', 'newest first')
  for (const limit of [1, 5, 12]) {
    t.same((await readPages(client, `/v1/memory/profile?limit=${limit}`)).flat(), all)
  }
  const { body } = await client.get('/v1/memory/profile?limit=1')
  const other = await client.get(`/v1/memory/profile?limit=1&kinds=name&cursor=${body.next_cursor}`)
  t.match(other, { status: 400, body: { error: /cursor is not one of this list/ } })
})

t.test('a session has a profile of its own', async t => {
  const { key, ...client } = await newClient()
  await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'I live in Porto.', at: begin },
    { text: 'I live in Faro.', at: begin + day, session: 'trip' },
    { text: 'I live in the clouds of this poem.', at: begin, role: 'assistant' },
    { text: 'I live in reflections.', tier: 2, importance: 5, coversFrom: begin, at: begin },
  ])
  t.same(brief(await read(client)), ['place: I live in Porto.'])
  t.match(await read(client, '?session_id=trip'), [{ quote: 'I live in Faro.', source: 'session' }])
  const { body } = await client.get('/v1/memory/profile', { 'x-session-id': 'trip' })
  t.same(brief(body.items), ['place: I live in Faro.'])
})

t.test('400: kinds that are none', async t => {
  const client = await newClient()
  for (const [query, error, hint] of [
    ['kinds=names', /kinds has no names/, /did you mean name\?/],
    ['kinds=zebra', /kinds has no zebra/, /known kinds: instruction, name/],
  ] as const) {
    const { status, body } = await client.get(`/v1/memory/profile?${query}`)
    t.equal(status, 400, query)
    t.match(body.error, error)
    t.match(body.hint, hint)
  }
})
