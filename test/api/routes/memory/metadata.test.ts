import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { importFile, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)
const newVault = async () => {
  const key = await buildKey(backend)
  return { key, api: createTestClient(base, key) }
}
type Api = Awaited<ReturnType<typeof newVault>>['api']

const store = (api: Api, content: string, metadata?: object, more: object = {}) =>
  api.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content }],
    ...(metadata && { metadata }),
    ...more,
  })

/** Three facts about one subject, two of them with metadata. */
async function filledVault() {
  const vault = await newVault()
  await store(vault.api, 'The spare key is with Otto.', { agent_id: 'porter', floor: 3, day: true })
  await store(vault.api, 'The spare key is under the mat.', { agent_id: 'cook', floor: 3 })
  await store(vault.api, 'The spare key hangs behind the clock.')
  return vault
}

const contents = (memories: { content?: string; text?: string }[]): string[] =>
  memories.map(({ content, text }) => content ?? text!).toSorted()

const otto = 'The spare key is with Otto.'
const mat = 'The spare key is under the mat.'
const clock = 'The spare key hangs behind the clock.'

const filters: [metadata: object | undefined, expected: string[]][] = [
  [undefined, [clock, otto, mat]],
  [{}, [clock, otto, mat]],
  [{ agent_id: 'porter' }, [otto]],
  [{ agent_id: ['porter', 'cook'] }, [otto, mat]],
  [{ floor: 3 }, [otto, mat]],
  [{ floor: 3, agent_id: 'cook' }, [mat]],
  [{ day: true }, [otto]],
  [{ floor: '3' }, []],
  [{ agent_id: 'Porter' }, []],
  [{ run_id: 'x' }, []],
]

t.test('search, prepare, list and date-search answer what has the metadata', async t => {
  const { api } = await filledVault()
  for (const [metadata, all] of filters) {
    const expected = all.toSorted()
    const name = JSON.stringify(metadata) ?? 'no filter'
    const filter = metadata && { metadata }
    const query = 'Where is the spare key?'
    const found = await api.post('/v1/memory/search', { query, limit: 10, ...filter })
    t.same(contents(found.body.memories), expected, `search ${name}`)
    const text = metadata && `?metadata=${encodeURIComponent(JSON.stringify(metadata))}`
    const listed = await api.get(`/v1/memory/list${text ?? ''}`)
    t.same(contents(listed.body.items), expected, `list ${name}`)
    for (const asked of [{}, { query }]) {
      const span = { from: '2020-01-01', ...asked, ...filter }
      const dated = await api.post('/v1/memory/date-search', span)
      t.same(contents(dated.body.memories), expected, `date-search ${name}`)
    }
    const messages = [{ role: 'user', content: query }]
    const { context } = (await api.post('/v1/memory/prepare', { messages, ...filter })).body
    for (const fact of [clock, otto, mat]) {
      t.equal((context ?? '').includes(fact), expected.includes(fact), `prepare ${name}: ${fact}`)
    }
  }
})

t.test('rows show their metadata, and those without have none', async t => {
  const { api } = await filledVault()
  const found = await api.post('/v1/memory/search', { query: otto, limit: 10 })
  const rows = new Map<string, { metadata?: object }>(
    found.body.memories.map((row: { content: string }) => [row.content, row]),
  )
  t.same(rows.get(otto)!.metadata, { agent_id: 'porter', floor: 3, day: true })
  t.notOk('metadata' in rows.get(clock)!)
  const stored = await readDocuments(backend, (await filledVault()).key)
  t.equal(stored.filter(document => 'metadata' in document).length, 2)
})

t.test('pages of a filtered list meet, and a cursor belongs to its filter', async t => {
  const { api } = await newVault()
  for (let n = 0; n < 6; n++) await store(api, `fact number ${n}`, { even: n % 2 === 0 })
  const path = `/v1/memory/list?limit=2&metadata=${encodeURIComponent('{"even":true}')}`
  const first = (await api.get(path)).body
  const next = (await api.get(`${path}&cursor=${first.next_cursor}`)).body
  t.same(contents([...first.items, ...next.items]), [
    'fact number 0',
    'fact number 2',
    'fact number 4',
  ])
  t.equal((await api.get(`/v1/memory/list?limit=2&cursor=${first.next_cursor}`)).status, 400)
})

t.test('it stays through an edit, an export and import, and a transfer', async t => {
  const { api } = await filledVault()
  const { body } = await api.post('/v1/memory/search', {
    query: otto,
    limit: 1,
    metadata: { day: true },
  })
  const edited = 'The spare key is with Anna.'
  await api.post('/v1/memory/edit', { memory_id: body.memories[0].id, text: edited })
  const ofPorter = { query: 'spare key', limit: 5, metadata: { agent_id: 'porter' } }
  t.same(contents((await api.post('/v1/memory/search', ofPorter)).body.memories), [edited])

  const lines = (await api.get('/v1/memory/export')).body as object[]
  const restored = (await newVault()).api
  const imported = await importFile(restored, lines)
  t.equal(imported.body.imported, 3)
  t.same(contents((await restored.post('/v1/memory/search', ofPorter)).body.memories), [edited])

  const { key, api: copied } = await newVault()
  await api.post('/v1/memory/transfer', { destination_key: key })
  t.same(contents((await copied.post('/v1/memory/search', ofPorter)).body.memories), [edited])
  const grafted = await newVault()
  const graft = { destination_key: grafted.key, queries: [edited], threshold: 0.1 }
  await api.post('/v1/memory/graft', graft)
  t.same(contents((await grafted.api.post('/v1/memory/search', ofPorter)).body.memories), [edited])
})

t.test('lines of an upload bring their own, and a faulty one does not sink the file', async t => {
  const { api } = await newVault()
  const lines = [
    { content: 'from the first page', metadata: { page: 1 } },
    { content: 'from the second page', metadata: { page: 2 } },
    { content: 'from nowhere', metadata: { 'a page': 3 } },
  ]
  const { body } = await uploadFile(api, lines)
  t.match(body, { stats: { stored: 2, failed: 1 }, errors: [{ line: 3, error: /metadata/ }] })
  const asked = { query: 'page', limit: 5, metadata: { page: 2 } }
  const found = await api.post('/v1/memory/search', asked)
  t.same(contents(found.body.memories), ['from the second page'])
})

t.test('200: what has the metadata is deleted, in sessions too, 500 at once', async t => {
  const { api } = await filledVault()
  await store(api, 'said in a session', { agent_id: 'porter' }, { session_id: 's' })
  const deleted = await api.post('/v1/memory/delete-ids', { metadata: { agent_id: 'porter' } })
  t.match(deleted, { status: 200, body: { requested: 2, deleted: 2, has_more: false } })
  t.same(contents((await api.get('/v1/memory/list')).body.items), [clock, mat].toSorted())
  const nothing = await api.post('/v1/memory/delete-ids', { metadata: { agent_id: 'porter' } })
  t.match(nothing, { status: 200, body: { requested: 0, deleted: 0, has_more: false } })
  for (const body of [{}, { metadata: {} }, { ids: [crypto.randomUUID()], metadata: { a: 1 } }]) {
    const refused = await api.post('/v1/memory/delete-ids', body)
    t.match(refused, { status: 400, body: { error: /either ids or metadata/ } })
  }
  t.equal((await api.get('/v1/memory/stats')).body.memories, 2)
})

t.test('400: what is no metadata, with the field that is wrong', async t => {
  const { api } = await newVault()
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, n]))
  const wrong: object[] = [
    many,
    { 'not a name': 1 },
    { ['x'.repeat(65)]: 1 },
    { '': 1 },
    { note: 'x'.repeat(257) },
    { nested: { a: 1 } },
    { nothing: null },
  ]
  for (const metadata of wrong) {
    const stored = await store(api, 'hello', metadata)
    t.match(stored, { status: 400, body: { error: /metadata/ } }, JSON.stringify(metadata))
    const asked = { query: 'x', limit: 1, metadata }
    t.equal((await api.post('/v1/memory/search', asked)).status, 400)
  }
  t.equal((await store(api, 'hello', { list: ['a'] })).status, 400)
  const search = (metadata: unknown) =>
    api.post('/v1/memory/search', { query: 'x', limit: 1, metadata })
  t.equal((await search({ a: [] })).status, 400)
  t.equal((await search({ a: Array.from({ length: 33 }, (_, n) => n) })).status, 400)
  t.equal((await search('a')).status, 400)
  for (const text of ['{', '[1]', '3', '{"a b":1}']) {
    const listed = await api.get(`/v1/memory/list?metadata=${encodeURIComponent(text)}`)
    t.match(listed, { status: 400, body: { error: /metadata/ } }, text)
  }
  const most = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k${n}`, '京'.repeat(256)]))
  t.equal((await store(api, 'hello', most)).status, 200)
})

t.test('400: a number that JSON has rounded, wherever metadata goes in', async t => {
  const { api, key } = await newVault()
  const [one, other] = ['1234567890123456789', '1234567890123456790']
  await store(api, 'Guild one plays chess.', { guild_id: one })
  await store(api, 'Guild two plays go.', { guild_id: other })
  const json = (path: string, fields: string, headers: Record<string, string> = {}) =>
    fetch(`${base}${path}`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: `{${fields}}`,
    })
  const messages = '"messages":[{"role":"user","content":"Which game?"}]'
  for (const number of [one, `-${one}`, '9007199254740992', '1e300']) {
    const metadata = `"metadata":{"guild_id":${number}}`
    const listed = `"metadata":{"guild_id":["a",${number}]}`
    const refused = [
      json('/v1/memory/ingest', `${messages},${metadata}`),
      json('/v1/memory/upload', `"content":"a","metadata":{"guild_id":${number}}`),
      json('/v1/memory/delete-ids', metadata),
      json('/v1/memory/search', `"query":"x","limit":1,${listed}`),
      json('/v1/memory/prepare', `${messages},${metadata}`),
      json('/v1/memory/date-search', `"from":"2020-01-01",${metadata}`),
      fetch(`${base}/v1/memory/list?metadata={"guild_id":${number}}`, {
        headers: { authorization: `Bearer ${key}` },
      }),
      ...['X-Memory-Metadata', 'X-Memory-Filter'].map(name =>
        json('/v1/chat/completions', `"model":"openai/gpt-4o",${messages}`, {
          [name]: `{"guild_id":${number}}`,
          'X-Provider-Key': 'sk-x',
        }),
      ),
    ]
    for (const answer of await Promise.all(refused)) {
      t.equal(answer.status, 400, `${answer.url} ${number}`)
      t.match(await answer.text(), /guild_id is a number beyond 2\^53.+text, such as/s)
    }
  }
  const largest = Number.MAX_SAFE_INTEGER
  t.equal((await store(api, 'The largest guild.', { guild_id: largest, share: 0.1 })).status, 200)
  const deleted = await api.post('/v1/memory/delete-ids', { metadata: { guild_id: one } })
  t.match(deleted.body, { requested: 1, deleted: 1 })
  t.equal((await api.get('/v1/memory/stats')).body.memories, 2)
})

t.test('the policy on private data holds for metadata', async t => {
  const { api } = await newVault()
  const decide = (mode: string) =>
    api.send('PUT', '/v1/account/policy', { body: { redaction: { mode, kinds: ['email'] } } })
  await decide('redact')
  await store(api, 'hello there', { from: 'ada@example.com', floor: 3 })
  const [row] = (await api.get('/v1/memory/list')).body.items
  t.same(row.metadata, { from: '[redacted:email]', floor: 3 })
  await decide('block')
  const blocked = await store(api, 'hello again', { from: 'ada@example.com' })
  t.match(blocked, { status: 400, body: { error: /metadata\.from.+email/ } })
})

t.test('a filter finds the few among the many that rank before them', async t => {
  const { api } = await newVault()
  const lines = Array.from({ length: 3_000 }, (_, n) => ({
    content: `The spare key is in drawer ${n}.`,
    metadata: { agent_id: n % 1_000 === 7 ? 'porter' : 'cook' },
  }))
  await uploadFile(api, lines)
  const asked = { query: 'Where is the spare key?', limit: 10, metadata: { agent_id: 'porter' } }
  const found = await api.post('/v1/memory/search', asked)
  t.same(
    contents(found.body.memories),
    [7, 1_007, 2_007].map(n => `The spare key is in drawer ${n}.`).toSorted(),
  )
})
