import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readBill, readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { setBalance, setDocumentFields } from '#test/support/checks/alter.ts'
import { billedEventsOfVault } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'
import type { KeyedClient } from '#test/support/start/memory-file.ts'

const { backend, newClient } = await startService(t, { jobs: ['ingest', 'delete-ids'] })

type Tenant = KeyedClient & { tell(texts: string[], session?: string): Promise<string[]> }

/** A vault of its own, and what it is told. */
async function fresh(): Promise<Tenant> {
  const client = await newClient()
  const tell: Tenant['tell'] = (texts, session) =>
    insertMemories(
      backend,
      client.key,
      texts.map(text => ({ text })),
      { session: session ?? null },
    )
  return { ...client, tell }
}

const vaultOf = async ({ key: own }: Tenant): Promise<string> =>
  (await readVaultScope(backend, own)).vault

const deleteIds = (client: TestClient, ids: unknown, headers: Record<string, string> = {}) =>
  client.post('/v1/memory/delete-ids', { ids }, headers)

const found = async (client: TestClient, query: string, headers: Record<string, string> = {}) => {
  const { body } = await client.post('/v1/memory/search', { query, limit: 50 }, headers)
  return body.memories.map((memory: { content: string }) => memory.content)
}

const debtOf = async (client: TestClient) =>
  (await client.post('/v1/memory/search', { query: 'anything', limit: 1 })).body.reflection

t.test(
  '200: what is deleted is gone from search, and its text and vectors from the store',
  async t => {
    const mine = await fresh()
    const [kept, gone] = await mine.tell(['a grey kitten', 'a brown kitten'])
    t.equal((await found(mine, 'kitten')).length, 2)
    const answer = await deleteIds(mine, [gone])
    t.match(answer, {
      status: 200,
      body: {
        requested: 1,
        deleted: 1,
        do_deleted: 1,
        not_found: 0,
        legacy_fallback_used: false,
        failed: [],
        operation_id: String,
      },
    })
    t.same(await found(mine, 'kitten'), ['a grey kitten'])
    const documents = await readDocuments(backend, mine.key)
    t.same(
      documents.map(({ _id }) => _id).toSorted(),
      [kept, gone].toSorted(),
      'its id stays taken',
    )
    const tombstone = documents.find(({ _id }) => _id === gone)!
    t.same(Object.keys(tombstone).toSorted(), ['_id', 'tomb_at', 'tomb_epoch', 'vault'])
  },
)

t.test(
  '200: unknown, foreign and deleted ids are not found alike; one given twice counts once',
  async t => {
    const mine = await fresh()
    const stranger = await fresh()
    const [id] = await mine.tell(['the spare key is under the pot'])
    const [foreign] = await stranger.tell(['somebody else said this'])
    const answer = await deleteIds(mine, [id, id!.toUpperCase(), foreign, mintId()])
    t.match(answer.body, { requested: 3, deleted: 1, not_found: 2, failed: [] })
    t.match((await deleteIds(mine, [id])).body, { requested: 1, deleted: 0, not_found: 1 })
    const neither = await mine.post('/v1/memory/delete-ids', {})
    t.match(neither, { status: 400, body: { error: /ids/ } }, 'neither ids nor metadata')
    t.same(await found(stranger, 'somebody'), ['somebody else said this'])
  },
)

t.test('200: memories of sessions go too, and the others of the session stay', async t => {
  const mine = await fresh()
  const inTrip = { 'x-session-id': 'trip' }
  const ids = await mine.tell(['a trip to Lisbon', 'a trip to Porto'], 'trip')
  t.equal((await found(mine, 'trip', inTrip)).length, 2)
  t.match((await deleteIds(mine, [ids[0]])).body, { deleted: 1 })
  t.same(await found(mine, 'trip', inTrip), ['a trip to Porto'])
})

t.test('200: what a session held before it was cleared is not found', async t => {
  const mine = await fresh()
  const [id] = await mine.tell(['before the session was cleared'], 's')
  const deleted = await mine.send('DELETE', '/v1/memory', {
    headers: { 'x-session-id': 's', prefer: 'respond-async' },
  })
  t.equal(deleted.status, 202)
  t.match((await deleteIds(mine, [id])).body, { deleted: 0, not_found: 1 })
})

t.test('200: another process sees it at its next request', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const mine = await fresh()
  const elsewhere = await startTestApi(t, second, mine.key)
  const ids = await mine.tell(['the blue door code', 'the red door code'])
  t.equal((await found(elsewhere, 'door code')).length, 2)
  await deleteIds(mine, [ids[0]])
  t.same(await found(elsewhere, 'door code'), ['the red door code'])
})

t.test('200: the debt falls by what waited for consolidation, of the core alone', async t => {
  const mine = await fresh()
  const ids = await mine.tell(['one two three', 'four five six'])
  const [inSession] = await mine.tell(['seven eight nine'], 's')
  const vault = await vaultOf(mine)
  await setDocumentFields(backend, vault, ids[1]!, { consolidated: true })
  const debt = async () => (await debtOf(mine)).unconsolidated
  const before = await debt()
  await deleteIds(mine, [ids[1], inSession])
  t.same(await debt(), before, 'consolidated and session memories are no debt')
  await deleteIds(mine, [ids[0]])
  t.equal((await debt()).raw.units, before.raw.units - 1)
  t.ok((await debt()).raw.est_tokens < before.raw.est_tokens)
})

t.test('200: reflections go at any tier, and their part of the debt', async t => {
  const mine = await fresh()
  const [, second, third] = await insertStoredMemories(
    backend,
    await readVaultScope(backend, mine.key),
    [
      { tier: 2, text: 'a reflection that stays', at: 1_000, importance: 5, tokens: 50 },
      { tier: 2, text: 'a reflection', at: 2_000, importance: 7, tokens: 40 },
      { tier: 3, text: 'a high-level reflection', at: 3_000, importance: 9, tokens: 30 },
    ],
  )
  t.match((await deleteIds(mine, [second, third])).body, { deleted: 2 })
  t.match((await debtOf(mine)).unconsolidated.tier2, { count: 1, importance: 5, est_tokens: 50 })
})

t.test(
  '200: the deleted tokens are billed once, under the operation; nothing deleted, no bill',
  async t => {
    const mine = await fresh()
    const ids = await mine.tell(['the boiler was serviced in May', 'and the roof in June'])
    const tokens = (await readDocuments(backend, mine.key)).reduce(
      (sum, row) => sum + row.tokens,
      0,
    )
    const { body } = await deleteIds(mine, ids, { 'idempotency-key': 'bill' })
    const again = await deleteIds(mine, ids, { 'idempotency-key': 'bill' })
    t.same(again.body, body)
    await deleteIds(mine, ids)
    t.equal(await readBill(backend, body.operation_id), tokens)
    const bills = await billedEventsOfVault(backend, await vaultOf(mine))
    t.equal(bills.filter(({ kind }) => kind === 'delete-ids').length, 1)
  },
)

t.test('200: an exhausted balance does not keep anyone from deleting', async t => {
  const mine = await fresh()
  const ids = await mine.tell(['still deletable'])
  await setBalance(backend, { vault: await vaultOf(mine) }, 0)
  t.match(await deleteIds(mine, ids), { status: 200, body: { deleted: 1 } })
})

t.test('200: an answer kept for an Idempotency-Key does not show it again', async t => {
  const mine = await fresh()
  const ids = await mine.tell(['the safe opens with 4711'])
  const ask = () =>
    mine.post('/v1/memory/search', { query: 'safe', limit: 5 }, { 'idempotency-key': 'ask' })
  t.equal((await ask()).body.totalMemories, 1)
  await deleteIds(mine, ids)
  t.equal((await ask()).body.totalMemories, 0)
})

t.test('200: 500 ids in one request', async t => {
  const mine = await fresh()
  const ids = await mine.tell(Array.from({ length: 300 }, (_, n) => `note ${n}`))
  const unknown = Array.from({ length: 200 }, () => mintId())
  const answer = await deleteIds(mine, [...ids, ...unknown])
  t.match(answer.body, { requested: 500, deleted: 300, not_found: 200, failed: [] })
  t.same(await found(mine, 'note'), [])
})

t.test('200: ten requests race for the same memory: one deletes it', async t => {
  const mine = await fresh()
  const ids = await mine.tell(['raced for', 'raced for too'])
  const answers = await Promise.all(Array.from({ length: 10 }, () => deleteIds(mine, ids)))
  t.equal(
    answers.reduce((sum, { body }) => sum + body.deleted, 0),
    2,
  )
  t.equal(
    answers.reduce((sum, { body }) => sum + body.not_found, 0),
    18,
  )
})

t.test('200: edits race with the deletion of what they edit: the debt is what is left', async t => {
  const mine = await fresh()
  for (let round = 0; round < 8; round++) {
    const [gone] = await mine.tell([`note ${round} that goes`, `note ${round} that stays`])
    const [deleted, ...edits] = await Promise.all([
      deleteIds(mine, [gone]),
      ...[1, 2].map(n =>
        mine.post('/v1/memory/edit', {
          memory_id: gone,
          text: `note ${round} that goes, in ${n} rather many more words than it had`,
        }),
      ),
    ])
    t.equal(deleted.body.deleted, 1)
    t.ok(edits.every(({ status }) => status === 200 || status === 404))
  }
  const left = (await readDocuments(backend, mine.key)).filter(row => row.text !== undefined)
  t.match((await debtOf(mine)).unconsolidated.raw, {
    units: 8,
    est_tokens: left.reduce((sum, row) => sum + row.tokens, 0),
  })
  t.equal(left.length, 8)
})

t.test('202: on request without the counts, and nobody sees them any more', async t => {
  const mine = await fresh()
  const ids = await mine.tell(['answered later', 'answered never'])
  const listed = async () => (await mine.get('/v1/memory/list')).body.items.length
  t.equal((await found(mine, 'answered')).length, 2)
  const { status, body } = await deleteIds(mine, ids, { prefer: 'respond-async' })
  t.match({ status, body }, { status: 202, body: { status: 'processing' } })
  t.same([await found(mine, 'answered'), await listed()], [[], 0])
  const operation = async () => (await mine.get(`/v1/operations/${body.operation_id}`)).body
  await waitUntil('it is done', async () => (await operation()).state === 'done')
  t.match(await operation(), {
    kind: 'delete-ids',
    state: 'done',
    outcome: { status: 200, body: { deleted: 2, operation_id: body.operation_id } },
  })
})

t.test('503: while the memory store is away, and the job does it when it is back', async t => {
  const gate = await startFaultProxy(t, backend.config.mongodbUri)
  const config = { ...backend.config, mongodbUri: gate.url }
  const mine = await fresh()
  const [id] = await mine.tell(['to be forgotten'])
  const ailing = await startTestApi(t, await createTestBackend(t, { config }), mine.key)
  gate.shut()
  const { status, body } = await deleteIds(ailing, [id], { prefer: 'respond-async' })
  t.match({ status, body }, { status: 503, body: { hint: /GET \/v1\/operations\/\S+ tells/ } })
  await waitUntil(
    'the job has removed it',
    async () => (await found(mine, 'forgotten')).length === 0,
  )
})
