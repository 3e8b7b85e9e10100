import t from 'tap'
import { copyChunk } from '#shared/vault/copy/chunk.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { raiseEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startService } from '#test/support/start/start-service.ts'
import {
  readBill,
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import { balanceOf, billedEvents, countRows } from '#test/support/checks/observe.ts'

const { backend, base } = await startService(t)
/** Nobody takes jobs on this one: its chunks wait for the test. */
const { backend: still, base: calm } = await startService(t, { jobs: [] })

const mask = (key: string): string => `${key.slice(0, 6)}…${key.slice(-4)}`
const as = (key: string) => createTestClient(base, key)
const transfer = (source: string, destination_key: string, body: object = {}, headers = {}) =>
  as(source).post('/v1/memory/transfer', { destination_key, ...body }, headers)

const DAY_MS = 86_400_000
const lastYear = Date.now() - 365 * DAY_MS

async function toldKey(): Promise<string> {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [
    { text: 'The cat is called Ada', at: lastYear, speaker: 'Mara' },
    { text: 'Noted, Ada it is.', at: lastYear, role: 'assistant' },
    { text: 'Ada is afraid of thunder', at: lastYear + DAY_MS },
  ])
  return key
}

t.test('200: copies the raw core memories with their time, role and speaker', async t => {
  const source = await toldKey()
  await insertMemories(backend, source, [{ text: 'a session secret' }], { session: 'chat' })
  await insertMemories(backend, source, [
    { text: 'They love Ada', tier: 2, role: 'system', importance: 7 },
  ])
  const destination = await buildKey(backend)
  const before = await readDocuments(backend, source)

  const { status, body } = await transfer(source, destination)
  t.equal(status, 200)
  t.match(body, {
    dry_run: false,
    operation: 'transfer',
    source_key: mask(source),
    destination_key: mask(destination),
    copied: 3,
    deduped_or_skipped: 0,
    failed: 0,
    estimated_tokens: Number,
    provenance: { origin_key: mask(source), transferred_at: String },
    operation_id: String,
  })
  t.notOk('errors' in body)
  t.same(await readDocuments(backend, source), before, 'the source is as it was, byte for byte')

  const copies = await readDocuments(backend, destination)
  const raw = before.filter(({ tier, session }) => tier === 1 && session === '')
  const kept = (documents: typeof copies) =>
    documents.map(({ text, role, speaker, at, tier, tokens, hash, vectors }) => {
      return { text, role, speaker, at, tier, tokens, hash, vectors }
    })
  t.same(kept(copies), kept(raw), 'in the order they were said, vectors and all')
  for (const [index, copy] of copies.entries()) {
    t.match(copy, { session: '', session_epoch: 0, consolidated: false, version: 1 })
    t.same(copy.provenance, {
      origin_key: mask(source),
      transferred_at: new Date(body.provenance.transferred_at),
      source_id: raw[index]!._id,
    })
    t.notMatch(copy.text, mask(source))
  }
  t.equal(
    body.estimated_tokens,
    copies.reduce((sum, { tokens }) => sum + tokens, 0),
  )
})

t.test('200: what was copied is found at once, and counts as debt of the destination', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  await as(destination).post('/v1/memory/warmup')
  const { body } = await transfer(source, destination)
  const found = await as(destination).post('/v1/memory/search', { query: 'cat Ada', limit: 10 })
  t.equal(found.body.totalMemories, 3)
  t.match(found.body.memories[0], { content: 'The cat is called Ada', window: 'longterm' })
  t.match(found.body.reflection.unconsolidated.raw, {
    units: 3,
    est_tokens: body.estimated_tokens,
  })
  const stats = await as(destination).get('/v1/memory/stats')
  t.match(stats.body, { memories: 3, oldest: new Date(lastYear).toISOString() })
})

t.test('200: a text the destination has is skipped, and so is a text told twice', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  await insertMemories(backend, source, [{ text: 'yes' }, { text: ' yes\n' }, { text: 'YES' }])
  await insertMemories(backend, destination, [{ text: '  Ada is afraid of thunder ' }])
  await insertMemories(backend, destination, [{ text: 'YES' }], { session: 'elsewhere' })
  const first = await transfer(source, destination)
  t.match(first.body, { copied: 4, deduped_or_skipped: 2, failed: 0 })
  const again = await transfer(source, destination)
  t.match(again.body, { copied: 0, deduped_or_skipped: 6, failed: 0, estimated_tokens: 0 })
  t.equal((await readDocuments(backend, destination)).length, 6)
  const debt = await resolveCaller(backend, destination)
  t.equal(debt.keyRow.rawUnits, 5, 'nothing is counted that was not copied')
})

t.test('200: an honest copy again, after the destination was cleared', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  await transfer(source, destination)
  const { scope } = await resolveCaller(backend, destination)
  await backend.postgres.transaction(tx => raiseEpoch(tx, scope.vault))
  t.match((await transfer(source, destination)).body, { copied: 3, deduped_or_skipped: 0 })
  const found = await as(destination).post('/v1/memory/search', { query: 'cat Ada', limit: 10 })
  t.equal(found.body.totalMemories, 3)
})

t.test('200: an empty source copies nothing', async t => {
  const { status, body } = await transfer(await buildKey(backend), await buildKey(backend))
  t.equal(status, 200)
  t.match(body, { copied: 0, deduped_or_skipped: 0, failed: 0, estimated_tokens: 0 })
})

t.test('200: a dry run tells what would be copied, oldest first, and writes nothing', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const long = `${'word '.repeat(60)}end`
  const [, , id] = await insertMemories(backend, source, [
    { text: 'line one\n\nline two' },
    { text: long },
    { text: '👩‍👩‍👧‍👦'.repeat(60) },
  ])
  const { status, body } = await transfer(source, destination, { dry_run: true })
  t.equal(status, 200)
  t.same(Object.keys(body).toSorted(), [
    'count',
    'destination_key',
    'dry_run',
    'estimated_tokens',
    'memories',
    'operation',
    'source_key',
  ])
  t.match(body, { dry_run: true, operation: 'transfer', count: 6, source_key: mask(source) })
  t.match(body.memories[0], {
    snippet: 'The cat is called Ada',
    role: 'user',
    timestamp: lastYear,
    estimated_tokens: Number,
  })
  t.equal(body.memories[3].snippet, 'line one line two')
  t.match(body.memories[4].snippet, /^word .*word…$/)
  t.ok(body.memories[4].snippet.length <= 161)
  t.match(body.memories[5], { id, snippet: /^(👩‍👩‍👧‍👦)+…$/u }, 'no character is cut')
  t.equal(
    body.estimated_tokens,
    body.memories.reduce((sum: number, row: { estimated_tokens: number }) => {
      return sum + row.estimated_tokens
    }, 0),
  )
  t.same(await readDocuments(backend, destination), [])
  const operations = await as(source).get('/v1/operations?kind=transfer')
  t.same(operations.body.items, [])
  t.same(await billedEvents(backend, source), [])
})

t.test('200: bills storage of what was copied, once, to the key that asked', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const { account } = await resolveCaller(backend, source)
  await setBalance(backend, { account }, 1000)
  const { body } = await transfer(source, destination)
  t.equal(await readBill(backend, body.operation_id), body.estimated_tokens)
  await transfer(source, destination)
  const tokens = body.estimated_tokens
  const bills = await billedEvents(backend, source)
  t.same(
    bills.map(({ kind, memoryTokens }) => ({ kind, memoryTokens })),
    [{ kind: 'transfer', memoryTokens: tokens }],
    'nothing copied is nothing billed',
  )
  t.equal(await balanceOf(backend, { account }), 1000 - tokens)
})

t.test('401: a key that has ended', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const { account, keyHash } = await resolveCaller(backend, source)
  await revokeKey(backend.postgres.query, account, keyHash)
  t.equal((await transfer(source, destination)).status, 401)
})

t.test('200: a source that may only read', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  t.match(await transfer(`${source}:read`, `${destination}:write`), {
    status: 200,
    body: { copied: 3, source_key: mask(source), destination_key: mask(destination) },
  })
})

t.test('400: every destination that is none', async t => {
  const source = await toldKey()
  const ended = await buildKey(backend)
  const { account, keyHash } = await resolveCaller(backend, ended)
  await revokeKey(backend.postgres.query, account, keyHash)
  const other = await buildKey(backend)
  const rotated = await as(source).post('/v1/keys/rotate', { grace_seconds: 3600 })
  const cases: [string, unknown, RegExp][] = [
    ['no key', 'hello', /no valid Memory Key/],
    ['unknown', `mk_${'y'.repeat(32)}`, /no valid Memory Key/],
    ['an admin', `mk_admin_${'y'.repeat(32)}`, /no valid Memory Key/],
    ['ended', ended, /no valid Memory Key/],
    ['an unknown suffix', `${other}:wrong`, /no valid Memory Key/],
    ['read-only', `${other}:read`, /:read/],
    ['off', `${other}:off`, /:off/],
    ['the same', source, /same vault/],
    ['the same, narrowed', `${source}:write`, /same vault/],
  ]
  if (rotated.status === 201) cases.push(['rotated', rotated.body.key, /same vault/])
  for (const [what, destination_key, error] of cases) {
    const { status, body } = await as(source).post('/v1/memory/transfer', { destination_key })
    t.equal(status, 400, what)
    t.match(body.error, error, what)
    t.notMatch(JSON.stringify(body), other, 'a key is not shown')
  }
})

t.test('200: true previews, false and nothing write', async t => {
  const source = await toldKey()
  for (const dry_run of [null, false]) {
    const { status, body } = await transfer(source, await buildKey(backend), { dry_run })
    t.match({ status, body }, { status: 200, body: { dry_run: false, copied: 3 } })
  }
})

t.test('202: respond-async is answered at once, and the operation tells the outcome', async t => {
  const source = await buildKey(still)
  const destination = await buildKey(still)
  const client = createTestClient(calm, source)
  await insertMemories(
    still,
    source,
    Array.from({ length: 600 }, (_, n) => ({ text: `fact ${n}` })),
  )
  const asked = await client.post(
    '/v1/memory/transfer',
    { destination_key: destination },
    { prefer: 'respond-async' },
  )
  t.match(asked, { status: 202, body: { status: 'processing', operation_id: String } })
  const id = asked.body.operation_id
  const path = `/v1/operations/${id}`
  t.match((await client.get(path)).body, {
    kind: 'transfer',
    state: 'accepted',
    progress: { done: 0, total: 2 },
  })
  await copyChunk(still, { operation: id, n: 1 })
  t.match((await client.get(path)).body, { state: 'running', progress: { done: 1, total: 2 } })
  await copyChunk(still, { operation: id, n: 0 })
  t.match((await client.get(path)).body, {
    state: 'done',
    progress: { done: 2, total: 2 },
    outcome: { status: 200, body: { copied: 600, operation_id: id } },
  })
  t.equal(await countRows(still, 'long_operations'), 0, 'what was asked is forgotten')
})

t.test('200: cancelled before it began copies nothing', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, [{ text: 'never mind' }])
  const client = createTestClient(calm, source)
  const { body } = await client.post(
    '/v1/memory/transfer',
    { destination_key: destination },
    { prefer: 'respond-async' },
  )
  t.match(await client.send('DELETE', `/v1/operations/${body.operation_id}`), { status: 200 })
  await copyChunk(still, { operation: body.operation_id, n: 0 })
  const written = (await readDocuments(still, destination)).filter(({ tomb_at }) => !tomb_at)
  const found = await createTestClient(calm, destination).get('/v1/memory/stats')
  t.match(found.body, { memories: 0 })
  t.same(written, [])
})

t.test('200: one Idempotency-Key copies once', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const headers = { 'idempotency-key': 'copy' }
  const first = await transfer(source, destination, {}, headers)
  const again = await transfer(source, destination, {}, headers)
  t.same(again.body, first.body)
  t.match(await transfer(source, destination, { dry_run: true }, headers), { status: 400 })
})
