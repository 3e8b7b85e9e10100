import t, { type Test } from 'tap'
import type { Client } from '@modelcontextprotocol/client'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const { base } = await startTestApi(t, backend)

const connect = (t: Test, key: string) => connectMcp(t, base, key)

// oxlint-disable-next-line typescript/no-explicit-any -- answers are checked by the tests
async function use(client: Client, name: string, args: Record<string, unknown> = {}): Promise<any> {
  const { structuredContent, isError, content } = await client.callTool({ name, arguments: args })
  const { text } = content[0] as { text: string }
  if (isError) return { refused: text }
  t.same(JSON.parse(text), structuredContent)
  return structuredContent
}

t.test('every tool is listed with its schema and what it may do', async t => {
  const client = await connect(t, key)
  const { tools } = await client.listTools()
  t.same(
    tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
    [
      ['search', true],
      ['prepare', true],
      ['date_search', true],
      ['list', true],
      ['profile', true],
      ['sessions', true],
      ['inspect', true],
      ['trace', true],
      ['stats', true],
      ['store', false],
      ['edit', false],
      ['delete', false],
      ['feedback', false],
      ['consolidate_checkout', false],
      ['consolidate_commit', false],
    ],
  )
  for (const tool of tools) t.equal(tool.inputSchema.type, 'object', tool.name)
  const search = tools.find(({ name }) => name === 'search')!.inputSchema
  t.match(search, {
    required: ['query'],
    properties: { query: {}, tiers: {}, session_id: {}, limit: { default: 10 } },
  })
  t.equal(tools.find(({ name }) => name === 'delete')!.annotations?.destructiveHint, true)
})

t.test('sessions are told with what they hold', async t => {
  const client = await connect(t, await buildKey(backend))
  const messages = [{ role: 'user', content: 'We plan a trip.' }]
  await use(client, 'store', { messages, session_id: 'trip' })
  const listed = await use(client, 'sessions', { limit: 5 })
  t.match(listed, { items: [{ session_id: 'trip', memories: 1 }] })
  t.notOk(listed.next_cursor, 'no further page')
})

t.test('a vault is told, asked, corrected, reflected on and made to forget', async t => {
  const client = await connect(t, key)
  const messages = [{ role: 'user', content: 'My cat is called Ada and she hates thunder.' }]
  t.match(await use(client, 'store', { messages }), { accepted: true, queued: false })
  const found = await use(client, 'search', { query: 'what is my cat called?', limit: 3 })
  t.match(found.memories[0].content, /Ada/)
  const memory_id = found.memories[0].id as string
  t.match(await use(client, 'prepare', { messages }), { context: /Ada/ })
  const quote = 'My cat is called Ada and she hates thunder.'
  const profile = await use(client, 'profile', { kinds: 'person', current: true })
  t.match(profile, { items: [{ kind: 'person', quote, memory_id }] })
  t.match(await use(client, 'list', { limit: 5, tier: 1 }), { items: [{ memory_id }] })
  const year = String(new Date().getUTCFullYear())
  t.match(await use(client, 'date_search', { from: `${year}-01-01` }), { memories: [{}] })
  await use(client, 'edit', { memory_id, text: 'My cat is called Ida.' })
  const batch = await use(client, 'consolidate_checkout', { tier: 1 })
  const committed = await use(client, 'consolidate_commit', {
    batch_id: batch.batch_id,
    entries: [{ text: 'The user has a cat, Ida.', importance: 4 }],
  })
  const [{ id }] = committed.created
  t.match(await use(client, 'inspect', { memory_id: id }), { sources: [{ id: memory_id }] })
  t.match(await use(client, 'stats'), { memories: 2 })
  const ids = [memory_id, id]
  t.match(await use(client, 'delete', { ids, dry_run: true }), { count: 2, sources_released: 0 })
  t.match(await use(client, 'stats'), { memories: 2 })
  t.match(await use(client, 'delete', { ids }), { deleted: 2 })
  t.match(await use(client, 'stats'), { memories: 0 })
})

t.test('a session is an argument of every tool that knows sessions', async t => {
  const client = await connect(t, key)
  const messages = [{ role: 'user', content: 'The meeting is in the blue room.' }]
  await use(client, 'store', { messages, session_id: 'Größe' })
  const args = { query: 'where is the meeting?', limit: 1 }
  t.match(await use(client, 'search', { ...args, session_id: 'Größe' }), {
    memories: [{ content: /blue/ }],
  })
  t.same((await use(client, 'search', args)).memories, [])
})

t.test('a refusal is an answer that the model can learn from', async t => {
  const client = await connect(t, key)
  t.match(await use(client, 'search', { query: 'x', limit: 0 }), { refused: /limit/ })
  t.match(await use(client, 'search', { query: 'x', limit: 1, teirs: [1] }), { refused: /tiers/ })
  t.match(await use(client, 'serach', {}), { refused: /there are search/ })
  const reader = await connect(t, `${key}:read`)
  const messages = [{ role: 'user', content: 'no' }]
  t.match(await use(reader, 'store', { messages }), { accepted: false, message: /does not store/ })
  t.match(await use(client, 'store', {}), { refused: /text or messages.*"text"/ })
  t.match(await use(client, 'store', { text: 'a', messages }), { refused: /text or messages/ })
  t.match(await use(reader, 'stats'), { memories: 1 })
})

t.test(
  'arguments may be the JSON text that a model wrote, empty, or one where a list is asked for',
  async t => {
    const client = await connect(t, await buildKey(backend))
    const message = { role: 'user', content: 'My balalaika is red.', timestamp: '2020-02-03' }
    t.match(await use(client, 'store', { messages: JSON.stringify([message]), session_id: '' }), {
      accepted: true,
    })
    await use(client, 'store', { text: '', messages: { ...message, content: '["a", "b"]' } })
    const args = { query: 'balalaika', tiers: '[1,2]', limit: '3', as_of: '', session_id: '' }
    const { memories } = await use(client, 'search', args)
    t.match(await use(client, 'search', { ...args, vaults: 'own' }), {
      memories: [{ vault: 'own' }],
    })
    t.match(memories, [{ content: /red/, timestamp: /^2020-02-03/ }])
    t.match(await use(client, 'search', { ...args, tiers: '1' }), { memories: [{}] })
    t.match(await use(client, 'search', { ...args, tiers: '[1,', limit: 'three' }), {
      refused: /tiers|limit/,
    })
    t.match(await use(client, 'list', { search: '["a", "b"]', cursor: '', limit: '' }), {
      items: [{}],
    })
    const batch = await use(client, 'consolidate_checkout', { tier: '1' })
    const entries = JSON.stringify({ text: 'The user plays a balalaika.', importance: '4' })
    await use(client, 'consolidate_commit', { batch_id: batch.batch_id, entries })
    const { id } = memories[0]
    t.match(await use(client, 'delete', { ids: id, dry_run: '' }), { refused: /dry_run/ })
    t.match(await use(client, 'delete', { ids: `["${id}"]`, dry_run: 'true' }), { count: 1 })
    t.match(await use(client, 'delete', { ids: id }), { deleted: 1 })
  },
)

t.test('every Accept is answered: in JSON, or in a stream where one is asked for', async t => {
  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${base}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify(body),
    })
    t.equal(response.status, 200)
    return [response.headers.get('content-type'), await response.text()] as const
  }
  const call = (args: unknown) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'stats', arguments: args },
  })
  for (const accept of ['application/json', '*/*', 'application/*;q=0.5', 'text/html', '']) {
    const [type, text] = await post(call(null), { accept })
    t.match(type, 'application/json', accept)
    t.match(JSON.parse(text), { id: 1, result: { structuredContent: { memories: Number } } })
  }
  for (const accept of ['text/event-stream', 'Application/JSON, Text/Event-Stream;q=0.1']) {
    const [type, text] = await post(call('{}'), { accept })
    t.equal(type, 'text/event-stream')
    t.match(text, /^data: .*total_tokens/m)
  }
  const [, both] = await post([call(''), { ...call({}), id: 2 }])
  t.match(JSON.parse(both), [{ id: 1 }, { id: 2 }])
})

t.test('resources show the vault without a tool call', async t => {
  const client = await connect(t, key)
  const { resources } = await client.listResources()
  t.same(
    resources.map(({ uri }) => uri),
    ['vault://stats', 'vault://recent'],
  )
  const { contents } = await client.readResource({ uri: 'vault://stats' })
  t.match(JSON.parse((contents[0] as { text: string }).text), { memories: 1 })
  await t.rejects(client.readResource({ uri: 'vault://else' }), /no resource/)
})

t.test('401: nothing without a valid key, and not with one revoked', async t => {
  const response = await fetch(`${base}/mcp`, { method: 'POST', body: '{}' })
  t.equal(response.status, 401)
  t.match(response.headers.get('www-authenticate'), /Bearer/)
  await t.rejects(connect(t, 'mk_00000000000000000000000000000000'))
  const { body } = await createTestClient(base, key).post('/v1/keys')
  const client = await connect(t, body.key)
  await createTestClient(base, body.key).post('/v1/keys/rotate')
  await t.rejects(client.callTool({ name: 'stats', arguments: {} }))
})

t.test('403: a page of another site', async t => {
  const headers = { authorization: `Bearer ${key}`, origin: 'https://evil.example' }
  t.equal((await fetch(`${base}/mcp`, { method: 'POST', headers, body: '{}' })).status, 403)
})

t.test('two tenants at once see their own', async t => {
  const other = await buildKey(backend)
  const clients = [await connect(t, key), await connect(t, other)]
  await Promise.all(
    clients.map((client, n) =>
      use(client, 'store', { messages: [{ role: 'user', content: `I am tenant number ${n}` }] }),
    ),
  )
  const asked = Array.from({ length: 20 }, (_, n) => n % 2)
  const answers = await Promise.all(
    asked.map(n => use(clients[n]!, 'search', { query: 'which tenant number?', limit: 5 })),
  )
  for (const [index, { memories }] of answers.entries()) {
    t.same(
      memories.map(({ content }: { content: string }) => content),
      [`I am tenant number ${asked[index]}`],
    )
  }
})

t.test('no header names another place to ask', async t => {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    host: 'internal.example:1',
    'x-forwarded-host': 'internal.example',
  }
  const response = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'stats', arguments: {} },
    }),
  })
  t.equal(response.status, 200)
  t.match(await response.text(), /total_tokens/)
})

t.test('a call with too many fields is refused before they are looked at', async t => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, number) => [`z${number}`, number]))
  const list = (params: object, others = {}) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'list', arguments: {}, ...params },
    ...others,
  })
  const send = async (body: unknown) => {
    const response = await fetch(`${base}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json',
      },
      body: JSON.stringify(body),
    })
    return { status: response.status, text: await response.text() }
  }
  const beyond = many(201)
  for (const [name, body] of Object.entries({
    arguments: list({ arguments: beyond }),
    'arguments as text': list({ arguments: JSON.stringify(beyond) }),
    metadata: list({ arguments: { metadata: beyond } }),
    _meta: list({ _meta: beyond }),
    params: list(beyond),
    message: list({}, beyond),
    capabilities: { ...list({}), params: { capabilities: { experimental: beyond } } },
  }))
    t.match(await send(body), { status: 400, text: /at most 200 fields/ }, name)
  t.match(await send(Array(101).fill(list({}))), { status: 400, text: /at most 100 messages/ })
  t.match(await send(list({ arguments: many(20) })), { status: 200, text: /unknown field z0/ })
})
