import t from 'tap'
import { createTestClient, startTestApi, type TestClient } from '#test/support/start/api.ts'
import { letHoursPass } from '#test/support/checks/alter.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { checkOut, commit } from '#test/support/start/consolidation.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import { vaultRow } from '#test/support/checks/observe.ts'
import { importFile, type KeyedClient, uploadFile } from '#test/support/start/memory-file.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

// Without the sweep, which removes what has expired without a request.
const { backend, newClient } = await startService(t, { jobs: allJobsBut('sweep') })

const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString()
/** A moment that passes with `past`. */
const soon = (): string => inMinutes(60)

const tell = (client: TestClient, content: string, expires_at?: string, headers = {}) =>
  client.post(
    '/v1/memory/ingest?wait=true',
    { messages: [{ role: 'user', content }], ...(expires_at && { expires_at }) },
    headers,
  )

const listed = async (client: TestClient) => {
  const { body } = await client.get('/v1/memory/list')
  return body.items.map((item: { text: string }) => item.text) as string[]
}

const found = async (client: TestClient, text: string, headers = {}) => {
  const { body } = await client.post('/v1/memory/search', { query: text, limit: 20 }, headers)
  return body.memories.map((memory: { content: string }) => memory.content) as string[]
}

const expirations = async (client: TestClient) =>
  (await client.get('/v1/operations?kind=expire')).body.items

/** The moments to come of these vaults pass. */
async function past(...users: KeyedClient[]): Promise<void> {
  for (const { key } of users)
    await letHoursPass(backend, (await readVaultScope(backend, key)).vault)
}

const nextExpiry = async (key: string): Promise<Date | null> => {
  const { vault } = await readVaultScope(backend, key)
  return (await vaultRow(backend, vault)).nextExpiry
}

t.test('200: what has come to its end is gone from every read, and from the store', async t => {
  const mine = await newClient()
  const at = soon()
  t.equal((await tell(mine, 'the parcel comes today', at)).status, 200)
  await tell(mine, 'the parcel service is slow')
  await tell(mine, 'a parcel of a session', at, { 'x-session-id': 's' })
  t.match((await mine.get('/v1/memory/list')).body.items, [
    { text: 'the parcel service is slow', expires_at: undefined },
    { text: 'the parcel comes today', expires_at: at },
  ])
  const asked = { query: 'parcel', limit: 5 }
  t.match(
    (await mine.post('/v1/memory/search', asked)).body.memories
      .map((row: { expires_at?: string }) => row.expires_at)
      .toSorted(),
    [at, undefined],
  )
  const { body } = await mine.get('/v1/memory/list')
  const gone = body.items[1].memory_id as string
  t.match((await mine.post('/v1/memory/inspect', { memory_id: gone })).body, { expires_at: at })

  await past(mine)
  t.same(await listed(mine), ['the parcel service is slow'])
  t.same(await found(mine, 'parcel'), ['the parcel service is slow'])
  t.same(await found(mine, 'parcel', { 'x-session-id': 's' }), [])
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 1 })
  t.equal((await mine.post('/v1/memory/inspect', { memory_id: gone })).status, 404)
  const dated = await mine.post('/v1/memory/date-search', { from: '2020-01-01' })
  t.equal(dated.body.count, 1)
  t.match(dated.body.reflection.unconsolidated.raw, { units: 1 })
  const prepared = await mine.post('/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'where is the parcel?' }],
  })
  t.notMatch(prepared.body.context, 'comes today')
  t.match((await mine.get('/v1/memory/export')).body, [{ content: 'the parcel service is slow' }])
  t.match(await expirations(mine), [
    { kind: 'expire', state: 'done', outcome: { status: 200, body: { expired: 2 } } },
  ])
  t.equal(await nextExpiry(mine.key), null)
  const tombstones = (await readDocuments(backend, mine.key)).filter(
    ({ text }) => text === undefined,
  )
  t.equal(tombstones.length, 2)
  for (const tombstone of tombstones) {
    t.same(Object.keys(tombstone).toSorted(), ['_id', 'tomb_at', 'tomb_epoch', 'vault'])
  }
})

t.test('400: a moment that has passed, or is none; nothing is stored', async t => {
  const mine = await newClient()
  const [memory] = await insertMemories(backend, mine.key, [{ text: 'stays as it is' }])
  for (const end of [inMinutes(-1), '2020-01-01T00:00:00Z', 'tomorrow', '', 1, '+9']) {
    const exchange = { messages: [{ role: 'user', content: 'never' }], expires_at: end }
    t.equal((await mine.post('/v1/memory/ingest', exchange)).status, 400, `${end}`)
    const edit = { memory_id: memory, text: 'other', expires_at: end }
    t.equal((await mine.post('/v1/memory/edit', edit)).status, 400, `${end}`)
  }
  const { status } = await mine.post('/v1/memory/ingest', { messages: [], expires_at: null })
  t.equal(status, 400)
  t.same(await listed(mine), ['stays as it is'])
})

t.test('200: an edit sets the end, moves it, leaves it, and takes it away', async t => {
  const mine = await newClient()
  const [id] = await insertMemories(backend, mine.key, [{ text: 'the guest network is open' }])
  const edit = async (text: string, body: object = {}) =>
    (await mine.post('/v1/memory/edit', { memory_id: id, text, ...body })).body.expires_at
  const [near, far] = [soon(), '2090-01-01T00:00:00.000Z']
  t.equal(await edit('until the evening', { expires_at: near }), near)
  t.same(await nextExpiry(mine.key), new Date(near))
  t.equal(await edit('until then', {}), near, 'left as it is')
  t.equal(await edit('for longer', { expires_at: far }), far)
  t.match((await mine.get('/v1/memory/list')).body.items, [{ expires_at: far }])
  await past(mine)
  t.same(await found(mine, 'for longer'), ['for longer'], 'the former moment has no meaning')
  t.same(await nextExpiry(mine.key), new Date(Date.parse(far) - 2 * 3_600_000))
  t.equal(await edit('for good', { expires_at: null }), undefined)
  t.match((await mine.get('/v1/memory/list')).body.items, [{ expires_at: undefined }])
  const soonOver = soon()
  await edit('not for long', { expires_at: soonOver })
  await past(mine)
  const late = { memory_id: id, text: 'back again', expires_at: null }
  t.equal((await mine.post('/v1/memory/edit', late)).status, 404)
  t.same(await listed(mine), [])
})

t.test('200: uploaded lines end one by one; one that is over already is faulty', async t => {
  const mine = await newClient()
  const at = soon()
  const file = [
    { content: 'the code of the week', expires_at: at, timestamp: -5_000 },
    { content: 'the house rules', timestamp: -4_000 },
    { content: 'the code of last week', expires_at: inMinutes(-1) },
  ]
  const { body } = await uploadFile(mine, file)
  t.match(body, { status: 'partial', stats: { stored: 2, failed: 1 } })
  t.match(body.errors, [{ line: 3, error: /expires_at must lie in the future/ }])
  t.equal((await listed(mine)).length, 2)
  await past(mine)
  const again = [{ content: 'the code of the week', timestamp: -5_000 }]
  const { body: anew } = await uploadFile(mine, again)
  t.match(anew, { stats: { stored: 1, skipped: 0 } }, 'what is over is not there already')
  t.same(await listed(mine), ['the house rules', 'the code of the week'])
})

t.test(
  '200: an export holds the end, an import restores it and skips what has expired',
  async t => {
    const mine = await newClient()
    const at = soon()
    await tell(mine, 'the ferry leaves at noon', at)
    await tell(mine, 'the ferry is blue')
    const { body: told } = await mine.get('/v1/memory/export')
    t.match(told, [{ expires_at: at }, { expires_at: undefined }])

    const other = await newClient()
    const gone = {
      ...told[1],
      id: '0199a1b2-c3d4-7000-8001-0123456789ab',
      expires_at: inMinutes(-1),
    }
    const file = [...told, gone]
    const over = [{ line: 3, error: /skipped: it was over at/ }]
    const dry = await importFile(other, file, '?dry_run=true')
    t.match(dry.body, { imported: 2, skipped: 1, failed: 0, errors: over })
    const { body } = await importFile(other, file)
    t.match(body, { status: 'complete', imported: 2, skipped: 1, failed: 0, errors: over })
    t.match((await other.get('/v1/memory/export')).body, [{ expires_at: at }, {}])
    const replaced = [{ ...told[0], expires_at: undefined }]
    t.match((await importFile(other, replaced, '?on_conflict=replace')).body, {
      replaced: 1,
    })
    await past(mine, other)
    t.same(await listed(mine), ['the ferry is blue'])
    t.equal((await listed(other)).length, 2, 'replaced by a line without an end it stays')
  },
)

t.test('200: copies end when their originals do', async t => {
  const mine = await newClient()
  const [whole, some] = [await newClient(), await newClient()]
  const at = soon()
  await tell(mine, 'the tent is in the attic', at)
  await tell(mine, 'the tent is green')
  await mine.post('/v1/memory/transfer', { destination_key: whole.key })
  await mine.post('/v1/memory/graft', {
    destination_key: some.key,
    queries: ['the tent is in the attic'],
    threshold: 0.1,
  })
  for (const one of [whole, some]) {
    const { items } = (await one.get('/v1/memory/list')).body
    const ends = items.map((item: { expires_at?: string }) => item.expires_at)
    t.ok(ends.includes(at))
  }
  await past(mine, whole, some)
  t.match((await mine.post('/v1/memory/transfer', { destination_key: whole.key })).body, {
    copied: 0,
    deduped_or_skipped: 1,
  })
  for (const one of [mine, whole]) t.same(await listed(one), ['the tent is green'])
  t.notOk((await listed(some)).includes('the tent is in the attic'))
})

t.test('200: fifty requests at the moment of the end remove it once, in two processes', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const elsewhere = await startTestApi(t, second)
  const mine = await newClient()
  const there = createTestClient(elsewhere.base, mine.key)
  const at = soon()
  const messages = Array.from({ length: 40 }, (_, n) => ({ role: 'user', content: `day ${n}` }))
  await mine.post('/v1/memory/ingest?wait=true', { messages, expires_at: at })
  await tell(mine, 'day without an end')
  for (const client of [mine, there]) t.equal((await found(client, 'day')).length, 20)
  await past(mine)
  second.verifiedKeys.noteChange()
  const reads = Array.from({ length: 50 }, async (_, n) =>
    n % 2 ? found(n % 4 === 1 ? mine : there, 'day') : listed(n % 4 === 0 ? mine : there),
  )
  for (const read of await Promise.all(reads)) t.same(read, ['day without an end'])
  t.match(await expirations(mine), [{ state: 'done', outcome: { body: { expired: 40 } } }])
  t.equal((await expirations(mine)).length, 1)
  t.match((await resolveCaller(backend, mine.key)).keyRow, { rawUnits: 1, hasExpired: false })
})

t.test('200: sources of a lent batch may end; the debt loses none to it', async t => {
  const mine = await newClient()
  const at = soon()
  await tell(mine, 'one that ends', at)
  await tell(mine, 'one that stays')
  const { body: batch } = await checkOut(mine)
  t.equal(batch.count, 2)
  await past(mine)
  t.match((await resolveCaller(backend, mine.key)).keyRow, { hasExpired: true })
  const { body } = await commit(mine, batch.batch_id, [{ text: 'both of them', importance: 5 }])
  t.match(body, { committed: true, sources_consolidated: 1 })
  t.match(body.reflection.unconsolidated, { raw: { units: 0, est_tokens: 0 }, tier2: { count: 1 } })
  const made = { memory_id: body.created[0].id }
  t.match((await mine.post('/v1/memory/inspect', made)).body, {
    sources_total: 2,
    sources_deleted: 1,
  })
})

t.test('a kept answer does not show what is over', async t => {
  const mine = await newClient()
  const at = soon()
  await tell(mine, 'seen for a moment', at)
  const ask = () =>
    mine.post('/v1/memory/search', { query: 'moment', limit: 5 }, { 'idempotency-key': 'same' })
  t.equal((await ask()).body.totalMemories, 1)
  await past(mine)
  t.equal((await ask()).body.totalMemories, 0)
})
