import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { importFile, uploadFile } from '#test/support/start/memory-file.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const api = await newClient()

const first = Date.parse('0001-01-01T00:00:00Z')
const latest = Date.parse('9999-12-31T23:59:59.999Z')

/** Oldest first; the one in the middle is from 1969-12-31. */
const moments = [
  first,
  Date.parse('1066-10-14T09:00:00Z'),
  Date.parse('1913-05-29T20:00:00.250Z'),
  -1,
  0,
  Date.parse('1975-01-02T00:00:00Z'),
  Date.parse('2024-02-29T12:00:00Z'),
  latest,
]
const told = moments.map((timestamp, n) => ({
  content: `the chronicle, leaf ${n}`,
  timestamp,
}))
const contents = told.map(({ content }) => content)
const iso = moments.map(at => new Date(at).toISOString())

const upload = (lines: object[]) => uploadFile(api, lines)

t.test('200: an upload takes every moment of the years 1 to 9999, once', async t => {
  t.equal(iso[0], '0001-01-01T00:00:00.000Z')
  const { status, body } = await upload(told)
  t.equal(status, 200)
  t.match(body, { status: 'complete', stats: { stored: 8, failed: 0 } })
  t.match((await upload(told)).body, { stats: { stored: 0, skipped: 8 } })
})

t.test('200: an exchange before 1970 is recalled with its time', async t => {
  const client = await newClient()
  const messages = [
    { role: 'user', content: 'the ship left the harbour', timestamp: moments[2] },
    { role: 'assistant', content: 'a calm day', timestamp: moments[2]! + 1_000 },
  ]
  t.equal((await client.post('/v1/memory/ingest?wait=true', { messages })).status, 200)
  const found = await client.post('/v1/memory/search', { query: 'ship harbour', limit: 1 })
  t.match(found.body.memories, [{ timestamp: iso[2], window: 'longterm' }])
  const asked = { messages: [{ role: 'user', content: 'when did the ship leave the harbour?' }] }
  const { context } = (await client.post('/v1/memory/prepare', asked)).body
  t.match(context, /\d+ years ago · 1913-05-29 20:00 UTC · user\] the ship left/)
})

t.test('400: a moment outside of those years, such as one in microseconds', async t => {
  const micros = Date.UTC(2026, 0, 1) * 1_000
  for (const timestamp of [micros, latest + 1, first - 1, 8.64e15, -8.64e15]) {
    const messages = [{ role: 'user', content: 'x', timestamp }]
    const refused = await api.post('/v1/memory/ingest', { messages })
    t.match(refused, { status: 400, body: { error: /timestamp must be at (most|least)/ } })
    const uploaded = await upload([{ content: 'x', timestamp }])
    t.match(uploaded, { status: 400, body: { hint: /line 1: timestamp/ } })
  }
})

t.test('200: lists hold them in order, both ways, page by page', async t => {
  for (const order of ['oldest_first', 'newest_first']) {
    const path = `/v1/memory/list?order=${order}&limit=3`
    const items = (await readPages<{ date: string }>(api, path)).flat()
    t.same(
      items.map(({ date }) => date),
      order === 'oldest_first' ? iso : iso.toReversed(),
    )
  }
  const within = await api.get('/v1/memory/list?from=1000-01-01&to=1969-12-31&order=oldest_first')
  t.same(
    within.body.items.map(({ text }: { text: string }) => text),
    contents.slice(1, 4),
  )
  t.match((await api.get('/v1/memory/stats')).body, { oldest: iso[0], newest: iso[7] })
})

t.test('200: a date search finds them, in order, by relevance, and page by page', async t => {
  const search = (body: object) => api.post('/v1/memory/date-search', body)
  const texts = (rows: { content: string }[]) => rows.map(({ content }) => content)
  const whole = { from: '0001-01-01', to: '9999-12-31' }
  for (const order of ['oldest_first', 'newest_first']) {
    const { status, body } = await search({ ...whole, order })
    t.equal(status, 200)
    t.same(texts(body.memories), order === 'oldest_first' ? contents : contents.toReversed())
  }
  const ranked = await search({ from: '0001-01-01', to: '1969-12-31', query: 'chronicle leaf' })
  t.same(texts(ranked.body.memories).toSorted(), contents.slice(0, 4))

  const client = await newClient()
  const long = 'word '.repeat(450)
  for (const [n, timestamp] of moments.slice(0, 5).entries()) {
    const messages = [{ role: 'user', content: `${n} ${long}`, timestamp }]
    await client.post('/v1/memory/ingest?wait=true', { messages })
  }
  for (const order of ['oldest_first', 'newest_first']) {
    const seen: string[] = []
    let window: { from: string; to: string } = whole
    for (let page = 0; page < 10; page++) {
      const { body } = await client.post('/v1/memory/date-search', {
        ...window,
        order,
        max_tokens: 1_000,
      })
      seen.push(...body.memories.map(({ content }: { content: string }) => content[0]!))
      if (!body.truncated) break
      const { from, to } = body.returned
      window = order === 'oldest_first' ? { ...window, from: to } : { ...window, to: from }
    }
    const all = ['0', '1', '2', '3', '4']
    t.same(seen, order === 'oldest_first' ? all : all.toReversed())
  }
})

t.test('200: an export and a transfer bring them along', async t => {
  const { body: lines } = await api.get('/v1/memory/export')
  const clients = [await buildKey(backend), await buildKey(backend)] as const
  const restored = createTestClient(base, clients[0])
  const imported = await importFile(restored, lines as object[])
  t.equal(imported.status, 200)
  const copied = await api.post('/v1/memory/transfer', { destination_key: clients[1] })
  t.match(copied.body, { copied: 8, failed: 0 })
  for (const client of [restored, createTestClient(base, clients[1])]) {
    const { items } = (await client.get('/v1/memory/list?order=oldest_first')).body
    t.same(
      items.map(({ date }: { date: string }) => date),
      iso,
    )
  }
  const preview = await api.post('/v1/memory/transfer', {
    destination_key: await buildKey(backend),
    dry_run: true,
  })
  t.same(
    preview.body.memories.map(({ timestamp }: { timestamp: number }) => timestamp),
    moments,
  )
})

t.test('200: they are consolidated, the oldest first', async t => {
  const { body: batch } = await api.post('/v1/memory/consolidate/checkout', { tier: 1 })
  t.same(batch.covers, { from: iso[0], to: iso[7] })
  const entries = [{ text: 'A chronicle of all years', importance: 5 }]
  const committed = await api.post('/v1/memory/consolidate/commit', {
    batch_id: batch.batch_id,
    entries,
  })
  t.equal(committed.status, 200)
  const { id } = committed.body.created[0]
  const { body } = await api.post('/v1/memory/inspect', { memory_id: id })
  t.same(body.covers, { from: iso[0], to: iso[7] })
})

t.test('200: times without seconds, and days at the ends of all years', async t => {
  const client = await newClient()
  const messages = [
    { role: 'user', content: 'x', timestamp: Date.parse('2026-01-20T15:15:00Z') },
    { role: 'user', content: 'y', timestamp: Date.parse('2026-01-20T15:16:00Z') },
  ]
  await client.post('/v1/memory/ingest?wait=true', { messages })
  const minute = ['2026-01-20T15:15Z', '2026-01-20T15:15', '2026-01-20T17:15+02:00']
  for (const to of [...minute, '2026-01-20 17:15:00+02']) {
    const found = await client.post('/v1/memory/date-search', { from: '2026-01-20T15:15Z', to })
    t.match(found, { status: 200, body: { count: 1, memories: [{ content: 'x' }] } }, to)
    const list = await client.get(`/v1/memory/list?to=${encodeURIComponent(to)}`)
    t.match(list, { status: 200, body: { items: [{ text: 'x' }] } }, to)
    t.equal((await client.get(`/v1/account/usage?end=${encodeURIComponent(to)}`)).status, 200)
  }
  const ends = 'from=0000-01-01&to=9999-12-31'
  t.equal((await client.get(`/v1/memory/list?${ends}`)).body.items.length, 2)
  const used = await client.get('/v1/account/usage?start=0000-01-01&end=9999-12-31')
  t.match(used, { status: 200, body: { period: { end: iso[7] } } })
  t.equal((await client.get('/v1/account/events?since=0001-01-01T00:00')).status, 200)
})

t.test('400: a time that its zone takes out of the years, or that is none', async t => {
  const wrong = [
    '9999-12-31T23:59-01:00',
    '0000-01-01T00:00:00+01:00',
    '2026-01-20T15',
    '2026-01-20T15:15:',
    '2026-01-20T25:15Z',
    '2026-01-20T15:60Z',
    '2026-02-30 15:15:00+02',
    '12',
    '07/08/2025',
  ]
  for (const from of wrong) {
    t.equal((await api.post('/v1/memory/date-search', { from })).status, 400, from)
    const asked = `/v1/memory/list?from=${encodeURIComponent(from)}`
    t.equal((await api.get(asked)).status, 400, from)
    t.equal((await api.post('/v1/keys', { expires_at: from })).status, 400, from)
  }
})
