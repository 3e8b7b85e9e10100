import t from 'tap'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { connectMcp } from '#test/support/start/mcp.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** One call log for all ways to recall: what each leaves, how it is filtered, and what is forgotten. */

const world = await startProxyFixture(t)
const { backend, base } = world
await startJobWorkers(backend)

type Entry = Record<string, unknown> & { trace_id: string; way: string; question: string | null }

const bicycle = { text: 'The bicycle is orange.' }
const asked = 'Which bicycle is orange?'

async function begin(key?: string, headers: Record<string, string> = {}) {
  const own = key ?? (await buildKey(backend))
  const client = createTestClient(base, own)
  const ids = await insertMemories(backend, own, [bicycle, { text: 'The boat is blue.' }])
  const send = async (path: string, body: object) => {
    const answer = await client.post(`/v1/memory/${path}`, body, headers)
    return { ...answer, trace: answer.headers.get('x-memory-trace') }
  }
  const list = async (query = '', more: Record<string, string> = headers): Promise<Entry[]> =>
    (await client.get(`/v1/traces${query}`, more)).body.items
  const messages = (content: string) => ({ messages: [{ role: 'user', content }] })
  return {
    key: own,
    client,
    ids,
    list,
    chat: (body: object, more: Record<string, string> = {}) =>
      tracedCalls(world, own)(
        '/v1/chat/completions',
        JSON.stringify({ model: 'openai/gpt-5', ...body }),
        { ...headers, ...more },
      ),
    messages,
    search: (query = asked, more: object = {}) => send('search', { query, limit: 5, ...more }),
    prepare: (content = asked, more: object = {}) =>
      send('prepare', { ...messages(content), ...more }),
    dates: (query?: string) =>
      send('date-search', { from: '2020-01-01', to: '2030-01-01', max_tokens: 5_000, query }),
  }
}

t.test('each way leaves an entry, with what was recalled, its words and its times', async t => {
  const { key, client, ids, list, chat, messages, ...ways } = await begin()
  const prepared = await ways.prepare()
  const found = await ways.search(asked, { limit: 1 })
  const dated = await ways.dates(asked)
  const listed = await ways.dates()
  const mcp = await connectMcp(t, base, key)
  await mcp.callTool({ name: 'search', arguments: { query: asked } })
  const called = await chat(messages(asked))
  const items = await list()
  t.same(
    items.map(({ way, trace_id: id, question }) => [way, id, question]),
    [
      ['proxy', called.trace, asked],
      ['mcp', items[1]!.trace_id, asked],
      ['search', listed.trace, null],
      ['search', dated.trace, asked],
      ['search', found.trace, asked],
      ['prepare', prepared.trace, asked],
    ],
  )
  const [proxy, , , , search, preparation] = items
  t.match(proxy, {
    model: 'openai/gpt-5',
    status: 'ok',
    answer: /remembered/,
    latency: { recall: Number, provider: Number, total: Number },
    input_tokens: Number,
    output_tokens: Number,
    cost_usd: Number,
  })
  t.match(preparation, {
    model: null,
    status: 'ok',
    abstained: null,
    answer: null,
    user: null,
    memories: prepared.body.memories_found,
    tokens: prepared.body.memory_tokens,
    confidence: prepared.body.confidence,
    latency: { recall: Number, provider: null, total: Number },
    input_tokens: null,
    cost_usd: null,
    sent_bytes: 0,
  })
  t.match(search, {
    memories: 1,
    left_out_memories: found.body.matchingMemories - 1,
    tokens: found.body.tokenCount,
    confidence: null,
  })
  const { body: trace } = await client.get(`/v1/traces/${found.trace}`)
  t.match(trace, {
    way: 'search',
    question: asked,
    format: null,
    sent_sha256: null,
    splices: [],
    blocks: [{ turn: null, memories: [{ memory_id: ids[0], state: 'same', line: /orange/ }] }],
  })
  t.ok(trace.blocks[0].memories[0].why.includes('words'))
  const inOrder = (await client.get(`/v1/traces/${listed.trace}`)).body.blocks[0].memories
  t.match(inOrder, [{ state: 'same' }, { state: 'same' }])
  const recalled = (await client.get('/v1/traces/memories')).body.items
  t.match(recalled[0], { memory_id: ids[0], turns: 5, text: bicycle.text })
})

t.test('what found nothing says so; what is refused leaves nothing', async t => {
  const { list, key, ...ways } = await begin(await world.newKey())
  const nothing = await ways.prepare('What is the capital of Peru?')
  t.match(await list(), [
    { trace_id: nothing.trace, status: 'none', abstained: 'nothing_relevant', memories: 0 },
  ])
  t.equal((await ways.search('', {})).trace, null)
  t.equal((await ways.search(asked, { as_of: 'never' })).status, 400)
  const writer = createTestClient(base, `${key}:write`)
  const quiet = await writer.post('/v1/memory/search', { query: asked, limit: 3 })
  t.same([quiet.status, quiet.headers.get('x-memory-trace')], [200, null])
  t.equal((await list()).length, 1)
})

t.test(
  'what a provider refuses says so, and a turn that is sent again keeps its words',
  async t => {
    const { list, chat, messages, client } = await begin(await world.newKey())
    const refusal = {
      error: { message: `Incorrect API key provided: sk-own, not ${'x'.repeat(300)}` },
    }
    const question = messages('My boat is called Pequod.')
    world.provider.respondNext(respondJson(refusal, { status: 401 }))
    t.equal((await chat(question)).status, 401)
    await waitUntil('the words are stored', async () => (await list())[0]?.question !== null)
    const { trace } = await chat(question)
    await waitUntil('it has ended', async () => (await list())[0]?.answer_status === 200)
    const [good, bad] = await list()
    t.match(good, { trace_id: trace, error: null, question: 'My boat is called Pequod.' })
    const words = /^Incorrect API key/
    t.match(bad, { answer_status: 401, error: { from: 'openai', words }, readable: true })
    t.equal((await list('?failed=true')).length, 1)
    t.equal((await list('?failed=false')).length, 1)
    const { body } = await client.get('/v1/memory/list?search=Pequod')
    await client.post('/v1/memory/delete-ids', { ids: [body.items[0].memory_id] })
    t.equal((await list())[0]!.question, null, 'its memory is deleted')
  },
)

t.test('what this service refuses before memory is read stands there, too', async t => {
  const owner = await begin()
  const { body: ada } = await owner.client.post('/v1/keys', { external_id: 'ada' })
  await owner.client.send('PATCH', `/v1/keys/${ada.id}`, { body: { daily_requests: 1 } })
  const client = createTestClient(base, ada.key)
  await client.post('/v1/memory/search', { query: asked, limit: 1 })
  for (let n = 0; n < 5; n++)
    t.equal((await client.post('/v1/memory/search', { query: asked, limit: 1 })).status, 429)
  const error = { from: null, words: /^The budget of 1 requests in 24 hours is used up/ }
  const items = await owner.list('?user=ada&failed=true', {})
  t.match(items, [{ way: 'search', answer_status: 429, error, memories: 0 }])
  t.equal(items.length, 1, 'a flood writes few entries')
})

t.test('an owner who looks is no use: not billed, not budgeted, not logged', async t => {
  const owner = await begin()
  const ofAda = { 'x-memory-user': 'ada' }
  const looks = { ...ofAda, 'x-memory-inspection': 'true' }
  const { body: ada } = await owner.client.post('/v1/keys', { external_id: 'ada' })
  await insertMemories(backend, ada.key, [bicycle])
  await owner.client.send('PATCH', `/v1/keys/${ada.id}`, { body: { daily_requests: 1 } })
  t.equal((await owner.client.get('/v1/memory/list?limit=5', ofAda)).status, 200)
  t.equal((await owner.client.get('/v1/memory/list?limit=5', ofAda)).status, 429, 'used up')
  const report = async () =>
    (await owner.client.get('/v1/account/usage/report?group=user')).body.total
  await waitUntil('the first is billed', async () => (await report()).requests === 1)
  const before = await report()
  const searched = { query: asked, limit: 5 }
  for (const headers of [looks, { 'x-memory-inspection': 'true' }]) {
    t.match((await owner.client.get('/v1/memory/list?limit=5', headers)).body.items, [{}])
    t.equal((await owner.client.get('/v1/memory/profile', headers)).status, 200)
    const found = await owner.client.post('/v1/memory/search', searched, headers)
    t.match(found, { status: 200, body: { memories: [{ content: bicycle.text }] } })
    t.equal(found.headers.get('x-memory-trace'), null)
  }
  await backend.usage.flush()
  t.same(await report(), before)
  const said = { messages: [{ role: 'user', content: 'hello' }] }
  t.equal((await owner.client.post('/v1/memory/ingest', said, looks)).status, 429, 'that is use')
  const own = createTestClient(base, ada.key)
  const own429 = await own.get('/v1/memory/list?limit=5', { 'x-memory-inspection': 'true' })
  t.equal(own429.status, 429, 'of other keys it changes nothing')
  const nobody = { ...looks, 'x-memory-user': 'dora' }
  t.equal((await owner.client.get('/v1/memory/stats', nobody)).status, 404)
  t.same((await owner.client.get('/v1/keys?external_id=dora')).body.items, [], 'no user is made')
})

t.test('filters', async t => {
  const { list, chat, messages, client, ...ways } = await begin()
  await chat(messages(asked), { 'x-session-id': 'chat' })
  await ways.search()
  await ways.prepare('What is the capital of Peru?')
  const waysOf = async (query: string) => (await list(query)).map(({ way }) => way)
  t.same(await waysOf('?way=search'), ['search'])
  t.same(await waysOf('?status=none'), ['prepare'])
  t.same(await waysOf('?session=chat'), ['proxy'])
  t.same(await waysOf('?model=openai/gpt-5'), ['proxy'])
  t.same(await waysOf('?since=2020-01-01&until=2021-01-01'), [])
  t.same(await waysOf('?since=2020-01-01'), ['prepare', 'search', 'proxy'])
  t.equal((await client.get('/v1/traces?way=walk')).status, 400)
  const page = (await client.get('/v1/traces?limit=1&since=2020-01-01')).body
  t.equal((await client.get(`/v1/traces?cursor=${page.next_cursor}`)).status, 400, 'bound')
  t.same(await waysOf(`?since=2020-01-01&cursor=${page.next_cursor}`), ['search', 'proxy'])
})

t.test('an owner sees the calls of the whole account, and words of users alone', async t => {
  const owner = await begin()
  const headers = { 'x-memory-user': 'ada' }
  const secret = 'Where is the xylophone of Ada?'
  await owner.client.post('/v1/memory/search', { query: secret, limit: 1 }, headers)
  await owner.chat(owner.messages('My xylophone is purple.'), headers)
  const { body: minted } = await owner.client.post('/v1/keys', { name: 'another' })
  await createTestClient(base, minted.key).post('/v1/memory/search', { query: secret, limit: 1 })
  await (await begin()).search()
  await owner.search()
  t.equal((await owner.list()).length, 1)
  const words = async (query: string) =>
    (await owner.list(query, {})).map(({ user, question }) => [user, question])
  const ofAda = [
    ['ada', 'My xylophone is purple.'],
    ['ada', secret],
  ]
  t.same(await words('?account=true'), [[null, asked], [null, null], ...ofAda])
  t.same(await words('?user=ada'), ofAda)
  t.same(await words('?user=bob'), [])
  const minor = createTestClient(base, minted.key)
  for (const query of ['account=true', 'user=ada'])
    t.equal((await minor.get(`/v1/traces?${query}`)).status, 403)
  t.equal((await owner.client.get('/v1/traces?account=true', headers)).status, 400)
  const { id } = (await owner.client.get('/v1/keys?external_id=ada')).body.items[0]
  t.equal((await owner.client.send('DELETE', `/v1/keys/${id}`)).status, 200)
  t.same(await words('?user=ada'), [
    ['ada', null],
    ['ada', null],
  ])
})

t.test('a deleted or edited memory takes its words out of the log at once', async t => {
  const { client, list, key, ...ways } = await begin()
  const long = Array.from({ length: 900 }, (_, n) => `Word ${n} of the walrus.`).join('\n')
  for (const text of ['The walrus is called Quirin.', long]) {
    await ways.prepare(text)
    await ways.search('Who is Zoltan?')
    const stored = await client.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: text }],
    })
    t.equal(stored.status, 200)
  }
  const questions = async () => (await list()).map(({ question }) => question?.slice(0, 8) ?? null)
  t.same(await questions(), ['Who is Z', 'Word 0 o', 'Who is Z', 'The walr'])
  const { body } = await client.get('/v1/memory/list?limit=200&search=walrus')
  const ids = body.items.map(({ memory_id: id }: { memory_id: string }) => id)
  t.ok(ids.length > 2)
  const edited = body.items.find(({ text }: { text: string }) => text.includes('Quirin'))
  await client.post('/v1/memory/edit', { memory_id: edited.memory_id, text: 'He has no name.' })
  t.same(await questions(), ['Who is Z', 'Word 0 o', 'Who is Z', null])
  await client.post('/v1/memory/delete-ids', { ids: ids.slice(1, 2) })
  await client.post('/v1/memory/delete-ids', { ids })
  t.same(await questions(), ['Who is Z', null, 'Who is Z', null])
  t.notMatch(await tableText(backend, 'call_traces'), /walrus/)
  t.equal((await client.send('DELETE', '/v1/memory')).status, 200)
  t.same(await list(), [])
  const { scope } = await resolveCaller(backend, key)
  t.ok(scope)
})

t.test('the words of a model call are gone with its memories', async t => {
  const { client, list, chat, messages } = await begin()
  const { trace } = await chat(messages('My walrus is called Quirin.'))
  await waitUntil('the words are stored', async () => (await list())[0]?.question !== null)
  t.match(await list(), [{ question: 'My walrus is called Quirin.', answer: String }])
  const { body } = await client.get('/v1/memory/list?limit=200&search=walrus')
  await client.post('/v1/memory/delete-ids', { ids: [body.items[0].memory_id] })
  t.match(await list(), [{ question: null, answer: String }])
  t.notMatch(JSON.stringify((await client.get(`/v1/traces/${trace}`)).body), /walrus/)
})

t.test(
  'the policy and the redaction of the account hold for words, the export has them',
  async t => {
    const { client, list, ...ways } = await begin()
    const put = (body: object) => client.send('PUT', '/v1/account/policy', { body })
    await ways.search('Is ada@example.com in it?')
    const lines = (await client.get('/v1/account/export')).body as Entry[]
    t.match(
      lines.filter(({ type }) => type === 'trace'),
      [{ way: 'search', question: 'Is ada@example.com in it?' }],
    )
    await put({ traces: 'ids' })
    await ways.search('Who is Zoltan?')
    t.same(
      (await list()).map(({ question }) => question),
      [null, null],
    )
    t.notMatch(await tableText(backend, 'call_traces'), /Zoltan/)
    await put({ traces: 'texts', redaction: { mode: 'redact', kinds: ['email'] } })
    await ways.search('Is eve@example.com in it?')
    t.notMatch((await list())[0]!.question, /eve/)
    await put({ redaction: { mode: 'block', kinds: ['email'] } })
    await ways.search('Is eve@example.com in it?')
    t.equal((await list())[0]!.question, null)
    await ways.prepare('Not kept', {
      messages: [{ role: 'user', content: 'Not kept', memory: false }],
    })
    t.equal((await list())[0]!.question, null)
    await put({ traces: 'off' })
    t.equal((await ways.search()).trace, null)
    t.same(await list(), [])
  },
)

t.test('a trace is its vault’s', async t => {
  const one = await begin()
  const { trace } = await one.search('Where is the xylophone?')
  const other = await begin()
  t.equal((await other.client.get(`/v1/traces/${trace}`)).status, 404)
  t.same(await other.list('?account=true'), [])
})
