import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)
const newVault = async () => {
  const key = await buildKey(backend)
  return { key, api: createTestClient(base, key) }
}
type Api = Awaited<ReturnType<typeof newVault>>['api']

const [otto, mat, clock, hook] = [
  'The spare key is with Otto.',
  'The spare key is under the mat.',
  'The spare key hangs behind the clock.',
  'The spare key lies in the drawer.',
]
const everything = [otto, mat, clock, hook]

/** Four facts about one subject: of two days, with metadata and without, one of them by a program. */
async function filledVault() {
  const vault = await newVault()
  await uploadFile(vault.api, [
    { content: otto, timestamp: '2026-03-01', metadata: { floor: 1, due: '2026-05-01' } },
    { content: mat, timestamp: '2026-03-02', metadata: { floor: 3 } },
    { content: clock, timestamp: '2026-03-02T10:00:00Z', role: 'assistant' },
    { content: hook, timestamp: '2026-03-03', metadata: { origin: 'program', floor: 10 } },
  ])
  return vault
}

const contents = (memories: { content?: string; text?: string }[]): string[] =>
  memories.map(({ content, text }) => content ?? text!).toSorted()
const query = 'Where is the spare key?'
const asText = (filter: unknown) => encodeURIComponent(JSON.stringify(filter))

const filters: [filter: object, expected: string[]][] = [
  [{ metadata: { floor: { gte: 3 } } }, [mat, hook]],
  [{ metadata: { floor: { gt: 1, lt: 10 } } }, [mat]],
  [{ metadata: { floor: { exists: false } } }, [clock]],
  [{ metadata: { due: { lte: '2026-06-01' } } }, [otto]],
  [{ or: [{ metadata: { floor: 1 } }, { role: 'assistant' }] }, [otto, clock]],
  [{ not: { metadata: { floor: 3 } } }, [otto, clock, hook]],
  [{ origin: { ne: 'program' } }, [otto, mat, clock]],
  [{ time: { lt: '2026-03-02' } }, [otto]],
  [{ time: { gt: '2026-03-01', lte: '2026-03-02' } }, [mat, clock]],
  [{ session: { exists: false }, tier: 1 }, everything],
  [{ session: 'trip' }, []],
]

t.test('search, prepare, list and date-search answer what a filter lets through', async t => {
  const { api } = await filledVault()
  for (const [filter, all] of filters) {
    const expected = all.toSorted()
    const name = JSON.stringify(filter)
    const found = await api.post('/v1/memory/search', { query, limit: 10, filter })
    t.same(contents(found.body.memories), expected, `search ${name}`)
    const listed = await api.get(`/v1/memory/list?filter=${asText(filter)}`)
    t.same(contents(listed.body.items), expected, `list ${name}`)
    for (const asked of [{}, { query }]) {
      const span = { from: '2020-01-01', ...asked, filter }
      const dated = await api.post('/v1/memory/date-search', span)
      t.same(contents(dated.body.memories), expected, `date-search ${name}`)
    }
    const messages = [{ role: 'user', content: query }]
    const { context } = (await api.post('/v1/memory/prepare', { messages, filter })).body
    for (const fact of everything)
      t.equal((context ?? '').includes(fact), expected.includes(fact), `prepare ${name}: ${fact}`)
  }
})

t.test('metadata and a filter must both hold, and pages belong to their filter', async t => {
  const { api } = await filledVault()
  const filter = { time: { gte: '2026-03-02' } }
  const both = { metadata: { floor: [1, 3] }, filter }
  const found = await api.post('/v1/memory/search', { query, limit: 10, ...both })
  t.same(contents(found.body.memories), [mat])
  const path = `/v1/memory/list?limit=2&filter=${asText(filter)}`
  const first = (await api.get(path)).body
  const next = (await api.get(`${path}&cursor=${first.next_cursor}`)).body
  t.same(contents([...first.items, ...next.items]), [mat, clock, hook].toSorted())
  t.equal((await api.get(`/v1/memory/list?limit=2&cursor=${first.next_cursor}`)).status, 400)
})

t.test('a session is a field of searches and of what reaches all sessions', async t => {
  const { api } = await filledVault()
  const told = { messages: [{ role: 'user', content: 'The spare key is in the tent.' }] }
  await api.post('/v1/memory/ingest?wait=true', { ...told, session_id: 'trip' })
  const asked = { query, limit: 9, session_id: 'trip' }
  const search = async (filter: object) =>
    (await api.post('/v1/memory/search', { ...asked, filter })).body.totalMemories
  t.equal(await search({ session: 'trip' }), 1)
  t.equal(await search({ session: { ne: 'trip' } }), 0)
  const dated = { ...asked, from: '2020-01-01', filter: { session: { in: ['trip'] } } }
  t.equal((await api.post('/v1/memory/date-search', dated)).body.count, 1)
  const preview = async (filter: object) =>
    (await api.post('/v1/memory/delete-ids', { filter, dry_run: true })).body
  t.match(await preview({ session: 'trip' }), { count: 1, has_more: false })
  t.match(await preview({ session: { exists: false } }), { count: 4 })
})

t.test('200: what a filter lets through is previewed, judged and deleted', async t => {
  const { api } = await filledVault()
  const filter = { and: [{ origin: { nin: ['program'] } }, { metadata: { floor: { lt: 5 } } }] }
  const preview = await api.post('/v1/memory/delete-ids', { filter, dry_run: true })
  t.match(preview, { status: 200, body: { count: 2, requested: 2, has_more: false } })
  t.equal((await api.get('/v1/memory/stats')).body.memories, 4)

  const judged = await api.post('/v1/memory/feedback', { filter, feedback: 'wrong' })
  t.match(judged, { status: 200, body: { count: 2, ids: preview.body.ids } })
  const left = await api.post('/v1/memory/search', { query, limit: 10 })
  t.same(contents(left.body.memories), [clock, hook].toSorted())

  const deleted = await api.post('/v1/memory/delete-ids', { filter })
  t.match(deleted, { status: 200, body: { requested: 2, deleted: 2, has_more: false } })
  t.same(contents((await api.get('/v1/memory/list')).body.items), [clock, hook].toSorted())
})

t.test('200: an export of what a filter lets through', async t => {
  const { api } = await filledVault()
  const wanted = asText({ origin: { in: ['program', 'model'] } })
  const exported = await api.get(`/v1/memory/export?filter=${wanted}`)
  t.same(contents(exported.body as { content: string }[]), [clock, hook].toSorted())
})

t.test('200: a transfer and a graft copy what a filter lets through', async t => {
  const { api } = await filledVault()
  const filter = { not: { metadata: { floor: { gte: 3 } } } }
  for (const [path, more] of [
    ['transfer', {}],
    ['graft', { queries: [query], threshold: 0.1 }],
  ] as const) {
    const { key, api: destination } = await newVault()
    const copy = { destination_key: key, filter, ...more }
    const preview = await api.post(`/v1/memory/${path}`, { ...copy, dry_run: true })
    t.match(preview, { status: 200, body: { count: 2 } }, path)
    const done = await api.post(`/v1/memory/${path}`, copy)
    t.match(done, { status: 200, body: { copied: 2, failed: 0 } }, path)
    t.same(
      contents((await destination.get('/v1/memory/list')).body.items),
      [otto, clock].toSorted(),
    )
    // No reflection covers a copy: it waits to be consolidated.
    const { reflection } = (await destination.post('/v1/memory/search', { query, limit: 1 })).body
    t.equal(reflection.unconsolidated.raw.units, 2, path)
  }
})

const wrong: [filter: unknown, error: RegExp, hint?: RegExp][] = [
  [{}, /filter has no field/],
  [{ not: {} }, /filter\.not has no field/],
  [{ and: [] }, /filter\.and must have at least 1 item/],
  [{ and: { tier: 1 } }, /filter\.and must be a list/],
  [{ not: [{ tier: 1 }] }, /filter\.not must be an object/],
  [{ AND: [{ tier: 1 }] }, /filter\.AND/, /did you mean and/],
  [{ $or: [{ tier: 1 }] }, /filter\.\$or/, /did you mean or/],
  [{ agent_id: 'a' }, /filter\.agent_id/, /known fields: and, or, not, metadata, origin/],
  [{ 'metadata.floor': 3 }, /filter\.metadata\.floor/, /metadata/],
  [{ session_id: 'a' }, /filter\.session_id/, /did you mean session/],
  [{ metadata: { floor: { $gte: 3 } } }, /filter\.metadata\.floor\.\$gte/, /did you mean gte/],
  [{ metadata: { floor: { '>=': 3 } } }, /filter\.metadata\.floor\.>=/, /known fields: eq, ne, in/],
  [{ metadata: { floor: {} } }, /filter\.metadata\.floor has no operator/],
  [{ metadata: { floor: null } }, /filter\.metadata\.floor must be/, /\{"exists":false\}/],
  [{ metadata: { floor: [1, 2] } }, /filter\.metadata\.floor must be/, /\{"in":/],
  [{ metadata: { floor: { gte: true } } }, /filter\.metadata\.floor\.gte must be/],
  [{ metadata: { floor: { in: [] } } }, /filter\.metadata\.floor\.in must have at least 1/],
  [{ metadata: { floor: { eq: 2 ** 60 } } }, /floor is a number beyond 2\^53/],
  [{ metadata: { 'a name': 1 } }, /filter\.metadata has a field whose name is none/],
  [{ metadata: {} }, /filter has no field/],
  [{ role: 'person' }, /filter\.role must be one of user, assistant, system/],
  [{ role: null }, /filter\.role must be/],
  [{ role: ['user'] }, /filter\.role must be/, /\{"in":/],
  [{ origin: 'persn' }, /filter\.origin must be one of person/, /did you mean person/],
  [{ tier: 4 }, /filter\.tier/],
  [{ tier: { gte: 'a' } }, /filter\.tier\.gte must be a whole number/],
  [{ time: '2026-03-01' }, /filter\.time must be an object/],
  [{ time: { gte: 'yesterday' } }, /filter\.time\.gte must be a date/],
  [{ time: { eq: '2026-03-01' } }, /filter\.time\.eq/, /known fields: gt, gte, lt, lte/],
  [{ time: { gte: 1_700_000_000 } }, /filter\.time\.gte/],
  [{ session: { exists: 'no' } }, /filter\.session\.exists must be true or false/],
]

/** A filter that is nested so deep. */
const nested = (levels: number): object =>
  levels === 1 ? { tier: 1 } : { not: nested(levels - 1) }

t.test('400: what a filter does not know, with the right spelling, in every call', async t => {
  const { api, key } = await filledVault()
  const messages = [{ role: 'user', content: query }]
  const calls: [
    string,
    (api: Api, filter: unknown) => Promise<{ status: number; body: unknown }>,
  ][] = [
    ['search', (api, filter) => api.post('/v1/memory/search', { query, limit: 1, filter })],
    ['delete-ids', (api, filter) => api.post('/v1/memory/delete-ids', { filter, dry_run: true })],
    ['list', (api, filter) => api.get(`/v1/memory/list?filter=${asText(filter)}`)],
  ]
  for (const [filter, error, hint] of wrong) {
    for (const [name, call] of calls) {
      const refused = await call(api, filter)
      const title = `${name} ${JSON.stringify(filter)}`
      t.match(refused, { status: 400, body: { error, ...(hint && { hint }) } }, title)
    }
  }
  const faulty = { tier: { $nin: [1] } }
  for (const [path, body] of [
    ['prepare', { messages }],
    ['date-search', { from: '2020-01-01' }],
    ['feedback', { feedback: 'wrong' }],
    ['transfer', { destination_key: (await newVault()).key }],
    ['graft', { destination_key: (await newVault()).key, queries: [query] }],
  ] as const) {
    const refused = await api.post(`/v1/memory/${path}`, { ...body, filter: faulty })
    t.match(refused, { status: 400, body: { hint: /did you mean nin/ } }, path)
  }
  for (const filter of [{ filter: faulty }, { filter: null }, { filter: {} }]) {
    const called = await fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'X-Provider-Key': 'sk-x',
        'X-Memory-Filter': JSON.stringify(filter),
      },
      body: JSON.stringify({ model: 'openai/gpt-4o', messages }),
    })
    t.equal(called.status, 400, JSON.stringify(filter))
  }
  t.equal((await api.get('/v1/memory/stats')).body.memories, 4)
})

t.test('400: a filter of more than 8 levels or 32 tests', async t => {
  const { api } = await filledVault()
  const search = (filter: object) => api.post('/v1/memory/search', { query, limit: 1, filter })
  t.equal((await search(nested(8))).status, 200)
  t.match(await search(nested(9)), { status: 400, body: { error: /deeper than 8 levels/ } })
  t.match(await search(nested(60)), { status: 400, body: { error: /deeper than 8 levels/ } })
  const tests = (count: number) => ({
    and: [0, 1].map(half => ({
      or: Array.from({ length: 16 }, (_, n) =>
        n === 0 && half === 0 && count > 32 ? { tier: { gte: 1, lte: 3 } } : { tier: 1 },
      ),
    })),
  })
  t.equal((await search(tests(32))).status, 200)
  t.match(await search(tests(33)), { status: 400, body: { error: /more than 32 tests/ } })
  const deep = '{"not":'.repeat(700) + '{"tier":1}' + '}'.repeat(700)
  const listed = await api.get(`/v1/memory/list?filter=${encodeURIComponent(deep)}`)
  t.equal(listed.status, 400)
})
