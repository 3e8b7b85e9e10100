import type { Client } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { fieldsOf } from '#api/contract/document.ts'
import { tools } from '#api/mcp/tools.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

/** What models are shown of the tools, and what they get back. */

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

const connect = (t: Test, key: string, query = '') => connectMcp(t, base, key, { query })

const namesOf = async (client: Client): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name)

/** The keywords that Gemini's, OpenAI's and Cursor's converters all hand on to a model. */
const portable = new Set(
  'type description enum items properties required minimum maximum default'.split(' '),
)

function unportable(schema: Record<string, unknown>, path: string): string[] {
  const faults = Object.keys(schema)
    .filter(keyword => !portable.has(keyword))
    .map(keyword => `${path}: ${keyword}`)
  if (typeof schema.type !== 'string') faults.push(`${path}: not one type`)
  if (schema.enum && schema.type !== 'string')
    faults.push(`${path}: enum of ${String(schema.type)}`)
  if (schema.type === 'array' && !schema.items) faults.push(`${path}: no items`)
  const { properties = {}, items } = schema as {
    properties?: Record<string, Record<string, unknown>>
    items?: Record<string, unknown>
  }
  for (const name of (schema.required as string[] | undefined) ?? []) {
    if (!(name in properties)) faults.push(`${path}: required ${name}`)
  }
  return [
    ...faults,
    ...Object.entries(properties).flatMap(([name, inner]) => unportable(inner, `${path}.${name}`)),
    ...(items ? unportable(items, `${path}[]`) : []),
  ]
}

const toSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, one => `_${one.toLowerCase()}`)

t.test('schemas use what every client hands on', async t => {
  const client = await connect(t, await buildKey(backend))
  const listed = (await client.listTools()).tools
  for (const { name, inputSchema, description } of listed) {
    t.same(unportable(inputSchema, name), [])
    t.match(description, /Use it/, `${name} says when to use it`)
    const { limit } = inputSchema.properties as { limit?: { default?: number } }
    if (limit) t.ok(limit.default, `${name} has a default for its limit`)
  }
  t.ok(JSON.stringify(listed).length < 12_000, 'all tools together are short')
})

t.test(
  'each argument is one that the endpoint of the tool takes, with the same bounds',
  async t => {
    for (const { name, inputSchema, endpoint } of tools) {
      const { body, query, headers, params } = endpoint
      const known = [body?.schema, query].flatMap(part => (part ? fieldsOf(part).names : []))
      const inPath = params ? fieldsOf(params).names.map(toSnakeCase) : []
      const session = headers && fieldsOf(headers).names.includes('x-session-id')
      const own = name === 'store' ? ['text'] : []
      for (const argument of Object.keys(inputSchema.properties)) {
        const isKnown = [...known, ...own, ...inPath, ...(session ? ['session_id'] : [])].includes(
          argument,
        )
        t.ok(isKnown, `${name}.${argument}`)
      }
    }
  },
)

t.test('a key is shown what it may use', async t => {
  const key = await buildKey(backend)
  const all = await namesOf(await connect(t, key))
  t.equal(all.length, 15)
  const reading = await connect(t, `${key}:read`)
  t.same(
    all.filter(
      name =>
        !'store edit delete feedback consolidate_checkout consolidate_commit'
          .split(' ')
          .includes(name),
    ),
    await namesOf(reading),
  )
  t.equal((await reading.listResources()).resources.length, 2)
  const writing = await connect(t, `${key}:write`)
  t.same(await namesOf(writing), [
    'stats',
    'store',
    'edit',
    'delete',
    'feedback',
    'consolidate_commit',
  ])
  t.same(
    (await writing.listResources()).resources.map(({ uri }) => uri),
    ['vault://stats'],
  )
  t.same(await namesOf(await connect(t, `${key}:off`)), ['stats'])
})

t.test('tools are chosen in the address', async t => {
  const key = await buildKey(backend)
  const client = await connect(t, key, '?tools=search,store')
  t.same(await namesOf(client), ['search', 'store'])
  t.same((await client.listResources()).resources, [])
  const { isError, content } = await client.callTool({ name: 'delete', arguments: { ids: [] } })
  t.equal(isError, true)
  t.match(content, [{ text: 'There is no tool delete; there are search, store' }])
  t.same(await namesOf(await connect(t, `${key}:read`, '?tools=search&tools=store')), ['search'])
  for (const [query, error] of [
    ['?tools=serach', /no tool serach/],
    ['?tools=', /names no tool/],
    ['?tool=search', /unknown query parameter tool/],
  ] as const) {
    const headers = { authorization: `Bearer ${key}` }
    const refused = await fetch(`${base}/mcp${query}`, { method: 'POST', headers, body: '{}' })
    t.equal(refused.status, 400, query)
    t.match(await refused.json(), { error, hint: /search|tools/ })
  }
})

t.test('an argument that a tool does not take is refused by every tool', async t => {
  const client = await connect(t, await buildKey(backend))
  for (const [name, args] of Object.entries({
    search: { query: 'boat', colour: 'red' },
    list: { session_id: 'trip' },
    profile: { colour: 'red' },
    stats: { colour: 'red' },
  })) {
    const { isError, content } = await client.callTool({ name, arguments: args })
    t.equal(isError, true, name)
    t.match(content, [{ text: /unknown (field|query parameter) (colour|session_id)/ }], name)
  }
})

t.test('plain text is stored, and found with what a model needs and no more', async t => {
  const client = await connect(t, await buildKey(backend))
  const use = async (name: string, args: Record<string, unknown>) => {
    const { structuredContent } = await client.callTool({ name, arguments: args })
    return structuredContent as Record<string, Record<string, unknown>[]>
  }
  t.match(await use('search', { query: 'boat' }), { memories: [], note: /Nothing/ })
  t.match(await use('prepare', { messages: [{ role: 'user', content: 'boat?' }] }), {
    context: null,
    note: /Nothing/,
  })
  const stored = await use('store', { text: 'Our boat is called Merganser.', session_id: null })
  t.match(stored, { accepted: true, queued: false })
  const { memories } = await use('search', { query: 'the name of the boat', limit: null })
  t.same(Object.keys(memories![0]!).toSorted(), [
    'content',
    'id',
    'relevance',
    'role',
    'tier',
    'timestamp',
  ])
  t.match(memories, [{ content: 'Our boat is called Merganser.', role: 'user' }])
  const block = await use('prepare', {
    messages: [{ role: 'user', content: 'Our boat is called?' }],
  })
  t.same(Object.keys(block).toSorted(), ['context', 'memories', 'memories_found'])
  t.match(block.memories, [{ memory_id: memories![0]!.id, relevance: Number }])
  const { items, ...page } = await use('list', {})
  t.same(Object.keys(items![0]!).toSorted(), ['date', 'memory_id', 'role', 'text', 'tier'])
  t.same(page, {}, 'no cursor where there is no further page')
  await use('store', { text: 'Our car is yellow.' })
  t.type((await use('list', { limit: 1 })).next_cursor, 'string')
  const found = await use('date_search', { from: '2020-01-01', query: 'car' })
  t.same(Object.keys(found), ['memories'])
})
