import t from 'tap'
import { runRetentionStep } from '#shared/vault/delete/retention.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import { storeAccepted } from '#shared/vault/ingest/store-accepted.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { checkOut, commit } from '#test/support/start/consolidation.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { uploadFile } from '#test/support/start/memory-file.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

// They mostly wait.
t.jobs = 3
const besides = { buffered: true }

// Without the sweep, which removes what has expired without a request.
const { backend, base, newClient } = await startService(t, { jobs: allJobsBut('sweep') })

const path = '/v1/account/policy'
const dayMs = 24 * 3600 * 1000
const hourMs = 3600 * 1000

const decide = (client: TestClient, retention_days: unknown) =>
  client.send('PUT', path, { body: { retention_days } })

/** Decides, and waits for what is there to follow. @returns the outcome. */
async function decided(client: TestClient, days: number | null) {
  const { status, body } = await decide(client, days)
  if (status !== 200) throw new Error(`the policy answered ${status}`)
  const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body
  await waitUntil('what is there follows', async () => (await operation()).state === 'done')
  return (await operation()).outcome.body
}

const tell = (client: TestClient, content: string, expires_at?: string, headers = {}) =>
  client.post(
    '/v1/memory/ingest?wait=true',
    { messages: [{ role: 'user', content }], ...(expires_at && { expires_at }) },
    headers,
  )

const listed = async (client: TestClient) =>
  (await client.get('/v1/memory/list')).body.items as { text: string; expires_at?: string }[]

/** Whether a moment is where a retention of so many days from about now leads to. */
const isKept = (end: string | undefined, days: number): boolean => {
  const at = Date.parse(end ?? '')
  const last = Date.now() + days * dayMs
  return at % hourMs === 0 && at <= last && at > last - 2 * hourMs
}

/** Lets everything in a vault have been stored so long ago. */
const aged = (vault: string, days: number) =>
  backend.mongo.memories.updateMany({ vault: { $eq: vault } }, [
    { $set: { stored_at: { $subtract: ['$stored_at', days * dayMs] } } },
  ])

t.test(
  '200: all is kept until the account decides otherwise; each part by itself',
  besides,
  async t => {
    const mine = await newClient()
    t.match((await mine.get(path)).body, { retention_days: null, decided_by: 'default' })
    const answer = await decide(mine, 30)
    t.match(answer.body, { retention_days: 30, decided_by: 'default', operation_id: String })
    const again = await decide(mine, 30)
    t.match(again.body, { retention_days: 30, operation_id: undefined }, 'nothing has changed')
    const redaction = { mode: 'redact' }
    t.match((await mine.send('PUT', path, { body: { redaction } })).body, {
      redaction,
      retention_days: 30,
      operation_id: undefined,
    })
    const both = { redaction: { mode: 'off' }, retention_days: null }
    t.match((await mine.send('PUT', path, { body: both })).body, both)
    t.match((await mine.get(path)).body, both)
  },
)

t.test('200: what is stored from now on ends by it, by every way in', besides, async t => {
  const mine = await newClient()
  await decided(mine, 30)
  await tell(mine, 'from an exchange')
  await tell(mine, 'of a session', undefined, { 'x-session-id': 's' })
  const year = '2020-02-02T00:00:00.000Z'
  await uploadFile(mine, [{ content: 'of an old chat', timestamp: Date.parse(year) }])
  const { body: batch } = await checkOut(mine)
  await commit(mine, batch.batch_id, [{ text: 'what they said', importance: 3 }])
  const documents = await readDocuments(backend, mine.key)
  t.equal(documents.length, 4)
  for (const { text, expires_at } of documents) {
    t.ok(isKept(expires_at?.toISOString(), 30), `${text}: ${expires_at?.toISOString()}`)
  }
  const soon = new Date(Date.now() + dayMs).toISOString()
  await tell(mine, 'asked to end earlier', soon)
  await tell(mine, 'asked to end later', '2090-01-01T00:00:00Z')
  const rows = await listed(mine)
  t.equal(rows.find(({ text }) => text.endsWith('earlier'))?.expires_at, soon)
  t.ok(isKept(rows.find(({ text }) => text.endsWith('later'))?.expires_at, 30))
  const id = (await mine.get('/v1/memory/list')).body.items[0].memory_id
  const edited = await mine.post('/v1/memory/edit', {
    memory_id: id,
    text: 'for good, they say',
    expires_at: null,
  })
  t.ok(isKept(edited.body.expires_at, 30), 'nobody takes away more than was asked for')

  const other = await newClient()
  await tell(other, 'somebody else says', undefined)
  await other.post('/v1/memory/transfer', { destination_key: mine.key })
  t.ok(isKept((await listed(mine)).find(row => row.text.startsWith('somebody'))?.expires_at, 30))
})

t.test('200: what is there follows; lifted, what was asked for holds again', besides, async t => {
  const mine = await newClient()
  await insertStoredMemories(
    backend,
    await readVaultScope(backend, mine.key),
    Array.from({ length: 2_300 }, (_, n) => ({
      text: `note ${n}`,
      at: n,
      ...(n % 3 === 0 && { session: 's' }),
    })),
    { vectors: false },
  )
  const asked = '2090-01-01T00:00:00.000Z'
  await tell(mine, 'asked', asked)
  t.match(await decided(mine, 10), { retention_days: 10, memories: 2_301, changed: 2_301 })
  const ends = new Set(
    (await readDocuments(backend, mine.key)).map(row => row.expires_at?.toISOString()),
  )
  for (const end of ends) t.ok(isKept(end, 10), `${end}`)
  t.match(await decided(mine, 20), { changed: 2_301 })
  t.ok(isKept((await listed(mine))[0]?.expires_at, 20))
  t.match(await decided(mine, null), { retention_days: null, memories: 2_301, changed: 2_301 })
  const left = (await readDocuments(backend, mine.key)).filter(row => row.expires_at !== undefined)
  t.match(left, [{ text: 'asked', expires_at: new Date(asked) }])
  t.equal(left.length, 1)
  const { state } = (await mine.get('/v1/operations?kind=retention&limit=1')).body.items[0]
  t.equal(state, 'done')
})

t.test('200: what was stored longer ago is gone at once', besides, async t => {
  const mine = await newClient()
  for (const text of ['old news', 'older news']) await tell(mine, text)
  await aged((await mine.caller()).scope.vault, 8)
  await tell(mine, 'fresh news')
  const found = async () => {
    const { body } = await mine.post('/v1/memory/search', { query: 'news', limit: 9 })
    return body.memories.map((row: { content: string }) => row.content)
  }
  t.equal((await found()).length, 3)
  await decided(mine, 7)
  t.same(await found(), ['fresh news'])
  t.match((await resolveCaller(backend, mine.key)).keyRow, { rawUnits: 1 })
  const { items } = (await mine.get('/v1/operations?kind=expire')).body
  t.ok(items.every(({ state }: { state: string }) => state === 'done'))
  type Expired = { outcome: { body: { expired: number } } }
  // A request between the two, while their ends were written, removed one of them by itself.
  t.equal(
    items.reduce((sum: number, { outcome }: Expired) => sum + outcome.body.expired, 0),
    2,
  )
})

t.test('200: it holds for the vaults of members, and not for what they share', besides, async t => {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const member = createTestClient(base, await team.addMember('ann@example.com'))
  await tell(member, 'said in private')
  const shared = await admin.post(`/v1/orgs/${team.org}/memories`, { text: 'said to all' })
  t.equal(shared.status, 201)
  t.equal((await decide(admin, 3)).status, 200)
  await waitUntil('it follows', async () => isKept((await listed(member))[0]?.expires_at, 3))
  const { body } = await member.post('/v1/memory/search', { query: 'said', limit: 5 })
  const ends = new Map(
    body.memories.map((row: { content: string; expires_at?: string }) => [
      row.content,
      row.expires_at,
    ]),
  )
  t.ok(isKept(ends.get('said in private') as string, 3))
  t.equal(ends.get('said to all'), undefined)
})

t.test('what was accepted before and stored after is in line, too', besides, async t => {
  const service = await startService(t, { jobs: [] })
  const idle = service.backend
  const { key, ...mine } = await service.newClient()
  const messages = [{ role: 'user', content: 'on its way' }]
  await mine.post('/v1/memory/ingest', { messages })
  const { body } = await decide(mine, 5)
  // The page of nothing, and the end.
  for (const step of [0, 1]) {
    await runRetentionStep(idle, { operation: body.operation_id, n: step }, false)
  }
  t.equal((await mine.get(`/v1/operations/${body.operation_id}`)).body.state, 'done')
  const rows = await jobsOf<IngestJob>(idle, 'ingest')
  const dying = {
    ...idle.postgres,
    query: ((text, values, name) =>
      name === 'expiries.insert-announced'
        ? Promise.reject(new Error('killed'))
        : idle.postgres.query(text, values, name)) as Query,
  }
  const job = rows[0]!.data
  const killed = storeAccepted({ ...idle, postgres: dying }, [job], { again: false })
  await t.rejects(killed, { message: 'killed' })
  await storeAccepted(idle, [job], { again: true })
  t.ok(isKept((await listed(mine))[0]?.expires_at, 5))
  t.match((await resolveCaller(idle, key)).keyRow, { rawUnits: 1 })
})

t.test(
  'a step that runs twice counts once; a new decision ends the one before',
  besides,
  async t => {
    const service = await startService(t, { jobs: [] })
    const idle = service.backend
    const { key, ...mine } = await service.newClient()
    const rows = Array.from({ length: 1_500 }, (_, n) => ({ text: `note ${n}`, at: n }))
    await insertStoredMemories(idle, await readVaultScope(idle, key), rows, { vectors: false })
    const first = (await decide(mine, 5)).body.operation_id as string
    const step = (operation: string, n: number, again = false) =>
      runRetentionStep(idle, { operation, n }, again)
    await step(first, 0)
    await Promise.all([step(first, 0, true), step(first, 1), step(first, 1)])
    const progress = async (id: string) => (await mine.get(`/v1/operations/${id}`)).body.progress
    t.same(await progress(first), { done: 1_500, total: 1_500 })
    const jobs = await jobsOf(idle, 'retention')
    t.same(jobs.map(({ id }) => id).toSorted(), [0, 1, 2].map(n => memoryIdOf(first, n)).toSorted())
    const second = (await decide(mine, 6)).body.operation_id as string
    await step(first, 2)
    t.match((await mine.get(`/v1/operations/${first}`)).body.outcome, { status: 409 })
    for (const n of [0, 1, 2]) await step(second, n)
    t.match((await mine.get(`/v1/operations/${second}`)).body.outcome, {
      status: 200,
      body: { memories: 1_500, changed: 1_500 },
    })
    t.ok(isKept((await listed(mine))[0]?.expires_at, 6))
  },
)
