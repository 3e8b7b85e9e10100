import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildOrg, buildAdmin } from '#test/support/start/admin.ts'
import { importFile, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const fresh = async () => await newClient()

type Client = Awaited<ReturnType<typeof fresh>>
type Row = { text: string; date: string }

const iso = '2025-01-01T00:00:00.123Z'
const ms = Date.parse(iso)
/** What clients that count in seconds send for it. */
const seconds = 1_735_689_600

const ingest = (client: Client, timestamp: unknown, content = 'the boiler was serviced') =>
  client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content, timestamp }] })
const datesOf = async (client: Client): Promise<string[]> =>
  (await client.get('/v1/memory/list?order=oldest_first')).body.items.map(({ date }: Row) => date)

t.test('200: ingest takes ISO 8601, days and milliseconds', async t => {
  const client = await fresh()
  const times: [unknown, string][] = [
    ['1969-07-20', '1969-07-20T00:00:00.000Z'],
    ['1972-03-01T00:00:00Z', '1972-03-01T00:00:00.000Z'],
    ['2025-01-01T01:00+01:00', '2025-01-01T00:00:00.000Z'],
    [ms, iso],
    ['2025-01-02T10:00:00.123456789Z', '2025-01-02T10:00:00.123Z'],
    [Date.parse('2025-01-03') + 0.9, '2025-01-03T00:00:00.000Z'],
  ]
  for (const [n, [sent]] of times.entries()) {
    t.equal((await ingest(client, sent, `event number ${n}`)).status, 200, String(sent))
  }
  t.same(
    await datesOf(client),
    times.map(([, date]) => date),
  )
})

t.test('400: numbers that are seconds are refused, and nothing is stored', async t => {
  const client = await fresh()
  for (const timestamp of [seconds, seconds + 0.123, 1, 99_999_999_999]) {
    const { status, body } = await ingest(client, timestamp)
    t.equal(status, 400, String(timestamp))
    t.match(body.error, /messages\[0\]\.timestamp must be in milliseconds .* looks like seconds/)
  }
  for (const timestamp of ['yesterday', '2025-13-01', true, seconds * 1e6, {}]) {
    t.equal((await ingest(client, timestamp)).status, 400, JSON.stringify(timestamp))
  }
  const { error } = (await ingest(client, 'yesterday')).body
  t.match(error, /a date such as .* or a date and time such as .* or milliseconds since 1970/)
  t.same(await datesOf(client), [])
})

t.test(
  '200: what list answers can be uploaded; the same time in another form is there',
  async t => {
    const [from, to] = [await fresh(), await fresh()]
    await ingest(from, ms)
    const { body } = await from.get('/v1/memory/list')
    const rows: Row[] = body.items
    const upload = (...values: object[]) => uploadFile(to, values)
    const asListed = rows.map(({ text, date }) => ({ content: text, timestamp: date }))
    t.match((await upload(...asListed)).body, { status: 'complete', stats: { stored: 1 } })
    const asMs = rows.map(({ text }) => ({ content: text, timestamp: ms + 0.5 }))
    t.match((await upload(...asMs)).body, { stats: { stored: 0, skipped: 1 } })
    t.same(await datesOf(to), [iso])
  },
)

t.test('200: a line in seconds is faulty, the others are stored', async t => {
  const client = await fresh()
  const { body } = await uploadFile(client, [
    { content: 'one', timestamp: seconds },
    { content: 'two', timestamp: iso },
    { content: 'three', timestamp: ms, expires_at: Date.parse('2099-01-01') },
  ])
  t.match(body, { status: 'partial', stats: { stored: 2, failed: 1 } })
  t.match(body.errors, [
    { line: 1, error: /timestamp must be in milliseconds.*looks like seconds/ },
  ])
  const { body: listed } = await client.get('/v1/memory/list')
  t.match(
    listed.items.find(({ text }: Row) => text === 'three'),
    { expires_at: '2099-01-01T00:00:00.000Z' },
  )
})

t.test('200: an import takes ISO 8601, and every time that an export writes', async t => {
  const [from, to] = [await fresh(), await fresh()]
  await ingest(from, '1972-03-01', 'written down in 1972')
  const { body: exported } = await from.get('/v1/memory/export')
  t.match(exported, [{ timestamp: Date.parse('1972-03-01') }])
  const restored = await importFile(to, exported)
  t.match(restored.body, { status: 'complete', imported: 1 })
  const line = { ...exported[0], id: crypto.randomUUID(), content: 'another', timestamp: iso }
  t.match((await importFile(to, [line])).body, { imported: 1 })
  t.same(await datesOf(to), ['1972-03-01T00:00:00.000Z', iso])
})

t.test('200: expires_at in every form; 400 in seconds', async t => {
  const client = await fresh()
  const end = '2099-01-31T00:00:00.000Z'
  for (const expires_at of [end, '2099-01-31', '2099-01-31T00:00:00', Date.parse(end)]) {
    const messages = [{ role: 'user', content: `gone by ${String(expires_at)}` }]
    const told = await client.post('/v1/memory/ingest?wait=true', { messages, expires_at })
    t.equal(told.status, 200, String(expires_at))
  }
  const { body } = await client.get('/v1/memory/list')
  for (const { expires_at } of body.items) t.equal(expires_at, end)
  const edit = (expires_at: unknown) =>
    client.post('/v1/memory/edit', { memory_id: body.items[0].memory_id, text: 'new', expires_at })
  t.match((await edit(Date.parse('2098-01-01'))).body, { expires_at: '2098-01-01T00:00:00.000Z' })
  t.match(await edit(4_070_908_800), { status: 400, body: { error: /looks like seconds/ } })
  t.equal('expires_at' in (await edit(null)).body, false)
  const key = await client.post('/v1/keys', { expires_at: Date.parse(end) })
  t.match(key, { status: 201, body: { expires_at: end } })
})

t.test('200: spans by milliseconds: date-search, list, usage, events', async t => {
  const client = await fresh()
  for (const hour of [-1, 0, 1]) await ingest(client, ms + hour * 3_600_000, `hour ${hour}`)
  const { body } = await client.post('/v1/memory/date-search', { from: ms, to: ms })
  t.match(body, { count: 1, from: iso, to: iso, memories: [{ content: 'hour 0' }] })
  const found = await client.get(`/v1/memory/list?from=${ms}&to=${ms + 3_600_000}`)
  t.equal(found.body.items.length, 2)
  t.match(await client.get(`/v1/memory/list?from=${seconds}`), {
    status: 400,
    body: { error: /from must be in milliseconds.*looks like seconds/ },
  })
  t.equal((await client.get('/v1/memory/list?from=0')).body.items.length, 3)
  const { body: used } = await client.get(`/v1/account/usage?start=${ms}`)
  t.match(used, { period: { start: iso } })
  const since = `since=${Date.now() + 3_600_000}`
  t.same((await client.get(`/v1/account/events?${since}`)).body.items, [])
})

t.test("200: a team's audit since a day, a time or milliseconds", async t => {
  await buildAdmin(backend, operatorEmail(backend.config))
  const { admin, path } = await buildOrg(backend, base)
  for (const since of ['2020-01-01', '2020-01-01T00:00:00Z', String(ms)]) {
    t.equal((await admin.get(`${path}/audit?since=${since}`)).status, 200, since)
  }
  t.equal((await admin.get(`${path}/audit?since=${seconds}`)).status, 400)
})
