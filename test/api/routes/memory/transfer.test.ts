import fc from 'fast-check'
import t from 'tap'
import { acceptCopy } from '#shared/vault/copy/accept.ts'
import { copyChunk } from '#shared/vault/copy/chunk.ts'
import { resolveDestination } from '#shared/vault/copy/destination.ts'
import { transferCandidates } from '#shared/vault/copy/candidates.ts'
import { presentOperation } from '#api/present/operation.ts'
import { mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import { findCopyChunk } from '#shared/vault/copy/copies.postgres.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { findOperation } from '#shared/operations/operation-rows.postgres.ts'
import { raiseEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { startFaultProxy } from '#test/support/fault-proxy.ts'
import {
  readBill,
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/insert-memories.ts'

t.setTimeout(120_000)

const backend = await createTestBackend(t)
/** Nobody takes jobs on this one: its chunks wait for the test. */
const still = await createTestBackend(t)
await startJobWorkers(backend)
const api = await startTestApi(t, backend)
const calm = await startTestApi(t, still)
const gate = await startFaultProxy(t, still.config.mongodbUri)
const gated = await createTestBackend(t, { config: { ...still.config, mongodbUri: gate.url } })

const mask = (key: string): string => `${key.slice(0, 6)}…${key.slice(-4)}`
const as = (key: string) => createTestClient(api.base, key)
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
  const { rows } = await backend.postgres.query(
    'select count(*)::int n from usage_events where key_hash = $1',
    [hashKey(backend.config.keyPepper, source)],
  )
  t.same(rows, [{ n: 0 }])
})

t.test('200: bills storage of what was copied, once, to the key that asked', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  const { keyHash, account } = await resolveCaller(backend, source)
  await backend.postgres.query('update accounts set balance = 1000 where id = $1', [account])
  const { body } = await transfer(source, destination)
  t.equal(await readBill(backend, body.operation_id), body.estimated_tokens)
  await transfer(source, destination)
  const { rows } = await backend.postgres.query(
    `select kind, memory_tokens as tokens, (select balance from accounts where id = $2) balance
     from usage_events where key_hash = $1 order by id`,
    [keyHash, account],
  )
  const tokens = body.estimated_tokens
  const balance = String(1000 - tokens)
  t.same(rows, [{ kind: 'transfer', tokens, balance }], 'nothing copied is nothing billed')
})

t.test('401: no key, an unknown key', async t => {
  const destination = await buildKey(backend)
  t.match(
    await createTestClient(api.base).post('/v1/memory/transfer', { destination_key: destination }),
    {
      status: 401,
      body: { error: String },
    },
  )
  t.equal((await transfer(`mk_${'x'.repeat(32)}`, destination)).status, 401)
  const source = await toldKey()
  const { account, keyHash } = await resolveCaller(backend, source)
  await revokeKey(backend.postgres.query, account, keyHash)
  t.equal((await transfer(source, destination)).status, 401)
})

t.test('403: a source that may not read; 200: one that may only read', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  t.equal((await transfer(`${source}:off`, destination)).status, 403)
  t.equal((await transfer(`${source}:write`, destination)).status, 403)
  t.match(await transfer(`${source}:read`, `${destination}:write`), {
    status: 200,
    body: { copied: 3, source_key: mask(source), destination_key: mask(destination) },
  })
})

t.test('402: the balance is used up', async t => {
  const source = await toldKey()
  const { account } = await resolveCaller(backend, source)
  await backend.postgres.query('update accounts set balance = 0 where id = $1', [account])
  t.equal((await transfer(source, await buildKey(backend))).status, 402)
})

t.test('400: every destination that is none', async t => {
  const source = await toldKey()
  const ended = await buildKey(backend)
  const { account, keyHash } = await resolveCaller(backend, ended)
  await revokeKey(backend.postgres.query, account, keyHash)
  const other = await buildKey(backend)
  const rotated = await as(source).post('/v1/keys/rotate', { grace_seconds: 3600 })
  const cases: [string, unknown, RegExp][] = [
    ['missing', undefined, /destination_key/],
    ['no string', 7, /destination_key/],
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

t.test('200: exactly true previews, anything else writes', async t => {
  const source = await toldKey()
  for (const dry_run of ['true', 1, null, false]) {
    const { status, body } = await transfer(source, await buildKey(backend), { dry_run })
    t.match({ status, body }, { status: 200, body: { dry_run: false, copied: 3 } })
  }
})

t.test('400: what is no model, or not known', async t => {
  const [source, destination] = [await toldKey(), await buildKey(backend)]
  t.match(await transfer(source, destination, { dryrun: true }), {
    status: 400,
    body: { hint: /dry_run/ },
  })
  t.equal((await transfer(source, destination, { embeddings: 'nonsense' })).status, 400)
  t.equal((await transfer(source, destination, {}, { 'x-embedding-model': 'no/such' })).status, 400)
  t.same(await readDocuments(backend, destination), [])
})

t.test('413: 10,001 core memories are refused, 10,000 are copied', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  const row = (n: number) => ({ text: `memory number ${n}`, tokens: 3 })
  await insertMemories(
    backend,
    source,
    Array.from({ length: 10_000 }, (_, n) => row(n)),
  )
  await insertMemories(backend, source, [row(0)], { session: 'apart' })
  const begun = performance.now()
  const whole = await transfer(source, destination)
  t.match(whole, { status: 200, body: { copied: 10_000, failed: 0, estimated_tokens: 30_000 } })
  t.comment(`10,000 memories copied in ${Math.round(performance.now() - begun)} ms`)

  await insertMemories(backend, source, [row(10_000)])
  const other = await buildKey(backend)
  for (const dry_run of [false, true]) {
    t.match(await transfer(source, other, { dry_run }), {
      status: 413,
      body: { error: /10000/, hint: /graft/ },
    })
  }
  t.same(await readDocuments(backend, other), [])
})

t.test('202: respond-async is answered at once, and the operation tells the outcome', async t => {
  const source = await buildKey(still)
  const destination = await buildKey(still)
  const client = createTestClient(calm.base, source)
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
  const { rows } = await still.postgres.query('select count(*)::int n from copies')
  t.same(rows, [{ n: 0 }], 'what was asked is forgotten')
})

t.test('200: cancelled before it began copies nothing', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, [{ text: 'never mind' }])
  const client = createTestClient(calm.base, source)
  const { body } = await client.post(
    '/v1/memory/transfer',
    { destination_key: destination },
    { prefer: 'respond-async' },
  )
  t.match(await client.send('DELETE', `/v1/operations/${body.operation_id}`), { status: 200 })
  await copyChunk(still, { operation: body.operation_id, n: 0 })
  const written = (await readDocuments(still, destination)).filter(({ tomb_at }) => !tomb_at)
  const found = await createTestClient(calm.base, destination).get('/v1/memory/stats')
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

/** A copy that is promised, its chunks still waiting. */
async function promised(source: string, destination: string) {
  const caller = await resolveCaller(still, source)
  const embedder = await still.embedders.get()
  const memories = await transferCandidates(still, caller, embedder)
  const operation = mintId()
  const copy = {
    operation,
    kind: 'transfer' as const,
    destination: await resolveDestination(still, caller, destination),
    model: embedder.model,
    ids: memories.map(({ id }) => id),
    graftQuery: null,
    awaited: false,
  }
  await acceptCopy(still, caller, copy)
  const outcome = async () => {
    const row = await findOperation(still.postgres.query, caller.account, operation)
    return row && presentOperation(row).outcome
  }
  return { operation, caller, copy, outcome, chunk: (n: number) => ({ operation, n }) }
}

const manyFacts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `fact ${n}` }))

t.test('a chunk that ran twice, and twice at once, is counted once', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, source, manyFacts(700))
  const { chunk, outcome, copy, caller } = await promised(source, destination)
  await acceptCopy(still, caller, copy)
  await Promise.all([0, 0, 0, 1, 1].map(n => copyChunk(still, chunk(n))))
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { status: 200, body: { copied: 700, deduped_or_skipped: 0 } })
  t.equal((await readDocuments(still, destination)).length, 700)
  t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 700)
  t.equal((await resolveCaller(still, source)).keyRow.rawUnits, 700)
  const { rows } = await still.postgres.query('select pending from vaults where id = $1', [
    caller.scope.vault,
  ])
  t.same(rows, [{ pending: 0 }])
})

/** Every copy is cut off after it has written and before that is settled, as by a kill, until restored. */
async function cutOff(): Promise<{ restore(): Promise<void> }> {
  await still.postgres.query(
    `create or replace function cut() returns trigger language plpgsql
     as $$ begin raise exception 'cut'; end $$`,
  )
  await still.postgres.query(
    'create trigger cut before update on copy_chunks for each row execute function cut()',
  )
  return {
    restore: async () => void (await still.postgres.query('drop trigger cut on copy_chunks')),
  }
}

t.test(
  'killed between writing and settling, the next run counts what is there as copied',
  async t => {
    const [source, destination] = [await buildKey(still), await buildKey(still)]
    await insertMemories(still, source, [...manyFacts(20), { text: 'fact 3' }])
    const { chunk, outcome } = await promised(source, destination)
    const { restore } = await cutOff()
    await t.rejects(copyChunk(still, chunk(0)), { message: 'cut' })
    await restore()
    t.equal((await readDocuments(still, destination)).length, 20)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 0)
    await copyChunk(still, chunk(0))
    t.match(await outcome(), { status: 200, body: { copied: 20, deduped_or_skipped: 1 } })
    t.equal((await readDocuments(still, destination)).length, 20)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 20)
  },
)

t.test(
  'any copies in any order, cut off and repeated: the union of the texts, each once',
  async t => {
    const text = fc.constantFrom('yes', ' yes ', 'no', 'Ada', 'ada', 'é', 'e\u0301', 'ﬁ', 'tea')
    const step = fc.record({ copy: fc.nat(2), killed: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(text, { maxLength: 6 }), { minLength: 3, maxLength: 3 }),
        fc.array(text, { maxLength: 3 }),
        fc.array(step, { maxLength: 6 }),
        async (sources, there, steps) => {
          const destination = await buildKey(still)
          await insertMemories(
            still,
            destination,
            [...new Set(there)].map(content => ({ text: content })),
          )
          const before = (await readDocuments(still, destination)).length
          const copies = []
          for (const texts of sources) {
            const source = await buildKey(still)
            await insertMemories(
              still,
              source,
              texts.map(content => ({ text: content })),
            )
            copies.push(await promised(source, destination))
          }
          for (const { copy, killed } of steps) {
            const cut = killed ? await cutOff() : null
            await copyChunk(still, copies[copy]!.chunk(0)).catch((error: Error) => {
              if (error.message !== 'cut') throw error
            })
            await cut?.restore()
          }
          await Promise.all(copies.map(({ chunk }) => copyChunk(still, chunk(0))))

          const contents = (some: string[]) => new Set(some.map(one => one.normalize('NFC').trim()))
          const documents = await readDocuments(still, destination)
          const bodies = await Promise.all(
            copies.map(async ({ outcome }) => (await outcome())!.body as Record<string, number>),
          )
          const sum = (field: string) => bodies.reduce((all, body) => all + body[field]!, 0)
          const { keyRow } = await resolveCaller(still, destination)
          const asked = sources.flat().length
          const added = documents.length - before
          t.same(contents(documents.map(one => one.text)), contents([...there, ...sources.flat()]))
          t.equal(added, contents([...there, ...sources.flat()]).size - contents(there).size)
          t.equal(sum('copied'), added)
          t.equal(sum('deduped_or_skipped'), asked - added)
          t.equal(keyRow.rawUnits, documents.length)
          return documents.length === keyRow.rawUnits
        },
      ),
      { numRuns: 20 },
    )
  },
)

t.test('two copies of the same texts at once bring each text once', async t => {
  const sources = await Promise.all([0, 1, 2, 3].map(() => buildKey(still)))
  const destination = await buildKey(still)
  for (const source of sources) await insertMemories(still, source, manyFacts(400))
  const copies = await Promise.all(sources.map(source => promised(source, destination)))
  await Promise.all(copies.map(({ chunk }) => copyChunk(still, chunk(0))))
  t.equal((await readDocuments(still, destination)).length, 400)
  const outcomes = await Promise.all(copies.map(({ outcome }) => outcome()))
  const bodies = outcomes.map(outcome => outcome!.body as Record<string, number>)
  t.equal(
    bodies.reduce((sum, { copied = 0 }) => sum + copied, 0),
    400,
  )
})

t.test('copies in both directions at once do not lock each other out', async t => {
  const [one, other] = [await buildKey(still), await buildKey(still)]
  await insertMemories(still, one, manyFacts(900))
  await insertMemories(
    still,
    other,
    Array.from({ length: 900 }, (_, n) => ({ text: `other fact ${n}` })),
  )
  const there = await promised(one, other)
  const back = await promised(other, one)
  await Promise.all([0, 1].flatMap(n => [there, back].map(c => copyChunk(still, c.chunk(n)))))
  t.match(await there.outcome(), { body: { copied: 900 } })
  t.match(await back.outcome(), { body: { copied: 900 } })
})

t.test(
  '409: a destination that was cleared, or whose key has ended, gets nothing more',
  async t => {
    const source = await buildKey(still)
    await insertMemories(still, source, manyFacts(3))
    const cleared = await buildKey(still)
    const first = await promised(source, cleared)
    const { scope } = await resolveCaller(still, cleared)
    await still.postgres.transaction(tx => raiseEpoch(tx, scope.vault))
    await jobHandlers['copy-chunk'](still, [jobOf(first.chunk(0))])
    t.match(await first.outcome(), { status: 409, body: { error: /cleared/, hint: String } })
    t.same(await readDocuments(still, cleared), [])
    t.equal((await resolveCaller(still, cleared)).keyRow.rawUnits, 0)

    const ended = await buildKey(still)
    const second = await promised(source, ended)
    const { account, keyHash } = await resolveCaller(still, ended)
    await revokeKey(still.postgres.query, account, keyHash)
    await jobHandlers['copy-chunk'](still, [jobOf(second.chunk(0))])
    t.match(await second.outcome(), { status: 409, body: { error: /ended/ } })
  },
)

const jobOf = (data: { operation: string; n: number }, last = false) => ({
  id: mintId(),
  data,
  signal: new AbortController().signal,
  isRetry: false,
  isLastTry: last,
})

t.test(
  '200 with errors: one chunk is cut off, the rest is there; again adds what is missing',
  async t => {
    const [source, destination] = [await buildKey(still), await buildKey(still)]
    await insertMemories(still, source, manyFacts(1_200))
    const { chunk, outcome, operation } = await promised(source, destination)
    await copyChunk(still, chunk(0))
    const waiting = await findCopyChunk(still.postgres.query, operation, 1)
    t.equal(waiting?.chunk.ids.length, 500)
    // The memory store is away for one of them until its last try is over.
    gate.shut()
    const verdicts = await jobHandlers['copy-chunk'](gated, [jobOf(chunk(1))])
    t.match(verdicts, [{ status: 'retry' }], 'it is tried again')
    t.match(await jobHandlers['copy-chunk'](gated, [jobOf(chunk(1), true)]), [{ status: 'done' }])
    await copyChunk(still, chunk(2))
    t.match(await outcome(), {
      status: 200,
      body: { copied: 700, failed: 500, errors: [/^Memories 501 to 1000: /] },
    })
    t.equal((await readDocuments(still, destination)).length, 700)
    await copyChunk(still, chunk(1))
    t.equal(
      (await readDocuments(still, destination)).length,
      700,
      'what was given up stays given up',
    )

    const again = await promised(source, destination)
    for (const n of [0, 1, 2]) await copyChunk(still, again.chunk(n))
    t.match(await again.outcome(), {
      status: 200,
      body: { copied: 500, deduped_or_skipped: 700, failed: 0 },
    })
    t.equal((await readDocuments(still, destination)).length, 1_200)
    t.equal((await resolveCaller(still, destination)).keyRow.rawUnits, 1_200)
  },
)

t.test('what is deleted from the source meanwhile is not copied', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  const ids = await insertMemories(still, source, manyFacts(5))
  const { chunk, outcome, caller } = await promised(source, destination)
  await still.mongo.memories.deleteOne({ vault: caller.scope.vault, _id: ids[2]! })
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { body: { copied: 4, deduped_or_skipped: 1, failed: 0 } })
})

t.test('a memory whose vector went meanwhile is embedded anew', async t => {
  const [source, destination] = [await buildKey(still), await buildKey(still)]
  const [id] = await insertMemories(still, source, [{ text: 'the bicycle has a flat tyre' }])
  const { chunk, outcome, caller } = await promised(source, destination)
  const before = await still.mongo.memories.findOneAndUpdate(
    { vault: caller.scope.vault, _id: id! },
    { $set: { vectors: {} } },
  )
  await copyChunk(still, chunk(0))
  t.match(await outcome(), { body: { copied: 1 } })
  t.same((await readDocuments(still, destination))[0]!.vectors, before!.vectors)
})
