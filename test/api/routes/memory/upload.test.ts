import t from 'tap'
import { gzipSync } from 'node:zlib'
import type { Backend } from '#shared/backend.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { tombstoneDocuments } from '#test/support/checks/alter.ts'
import { billedEventsOfVault, countRows } from '#test/support/checks/observe.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { exportLines, fileOf, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: ['ingest', 'upload'] })
/** Nobody takes its jobs. */
const { backend: idle, newClient: newIdleClient } = await startService(t, { jobs: [] })

const textsOf = async (client: TestClient): Promise<string[]> =>
  (await exportLines(client)).map(({ content }) => content)
const stagedIn = (service: Backend): Promise<number> => countRows(service, 'long_operations')

const at = 1_700_000_000_000
const said = (content: string, n = 0, rest: object = {}) => ({
  content,
  timestamp: at + n * 60_000,
  ...rest,
})

t.test('the message names fields of lines that were not used', async t => {
  const client = await newClient()
  const more = { date: '2020-01-01', ts: 5, session_id: 's', tier: 2 }
  const { status, body } = await uploadFile(client, [{ content: 'The gate is red', ...more }])
  t.equal(status, 200)
  t.equal(body.message, '1 memory stored. Not used: date, ts, session_id, tier')
})

t.test('200: every line is stored with its role and time, and found', async t => {
  const client = await newClient()
  const begun = Date.now()
  const { status, body } = await uploadFile(client, [
    { content: 'The spare key is under the fern', timestamp: 1_700_000_000_000 },
    { content: 'Understood, under the fern', role: 'assistant', timestamp: 1_700_000_001_000.9 },
    { content: 'The customer is called Brandt', role: 'system' },
  ])
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, {
    status: 'complete',
    memoryKey: `${client.key.slice(0, 6)}…${client.key.slice(-4)}`,
    vault: 'core',
    stats: { inputItems: 3, memories: 3, stored: 3, skipped: 0, failed: 0, total: 3, processed: 3 },
    message: '3 memories stored',
  })
  t.notOk('errors' in body)
  const found = await client.post('/v1/memory/search', { query: 'spare key fern', limit: 5 })
  t.match(found.body.memories[0], {
    content: 'The spare key is under the fern',
    role: 'user',
    tier: 1,
    timestamp: '2023-11-14T22:13:20.000Z',
  })
  const exported = (await client.get('/v1/memory/export')).body
  t.match(exported, [
    { role: 'user' },
    { role: 'assistant', timestamp: 1_700_000_001_000 },
    { role: 'system' },
  ])
  const { timestamp } = exported[2]
  t.ok(timestamp >= begun && timestamp <= Date.now(), 'without a time it happened now')
})

t.test('200: what was stored is billed once, and adds to the debt', async t => {
  const client = await newClient()
  const lines = [said('The boiler was serviced in May'), said('By Ms Brandt', 1)]
  const { body } = await uploadFile(client, lines)
  await uploadFile(client, lines)
  const { scope, keyRow } = await client.caller()
  const bills = await billedEventsOfVault(backend, scope.vault)
  t.same(
    bills.map(({ id, kind, memoryTokens }) => ({ id, kind, memoryTokens })),
    [{ id: body.operation_id, kind: 'upload', memoryTokens: keyRow.rawTokens }],
  )
  t.equal(keyRow.rawUnits, 2)
  t.equal(keyRow.rawTokens, countTokens(lines[0]!.content) + countTokens(lines[1]!.content))
})

t.test('200: sent again a file adds nothing, in part only what is new', async t => {
  const client = await newClient()
  const lines = [said('yes'), said('yes', 1), said('no', 1)]
  t.match((await uploadFile(client, lines)).body.stats, { stored: 3, skipped: 0 })
  const again = await uploadFile(client, lines)
  t.match(again.body, {
    status: 'complete',
    stats: { inputItems: 3, memories: 3, stored: 0, skipped: 3, failed: 0, processed: 3 },
    message: '0 memories stored, 3 already there',
  })
  const more = await uploadFile(client, [said('no', 2), ...lines])
  t.match(more.body.stats, { stored: 1, skipped: 3 })
  t.equal((await textsOf(client)).length, 4)
})

t.test('200: within a file the same text at the same time is one memory', async t => {
  const client = await newClient()
  const lines = [
    said('yes'),
    said(' yes ', 0, { role: 'assistant' }),
    said('yes', 1),
    { content: 'no time' },
    { content: 'no time' },
  ]
  t.match((await uploadFile(client, lines)).body.stats, { memories: 5, stored: 3, skipped: 2 })
  t.match((await uploadFile(client, lines)).body.stats, { memories: 5, stored: 0, skipped: 5 })
})

t.test('200: what came another way with that text and time is there already', async t => {
  const client = await newClient()
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'We met at the harbour', timestamp: at }],
  })
  const { body } = await uploadFile(client, [
    said('We met at the harbour'),
    said('We met again', 1),
  ])
  t.match(body.stats, { stored: 1, skipped: 1 })
})

t.test('200: the same file five times at once is stored once', async t => {
  const client = await newClient()
  const lines = Array.from({ length: 250 }, (_, n) => said(`line number ${n}`, n))
  const answers = await Promise.all(
    // A blank line more makes each another file: none joins the work of another.
    Array.from({ length: 5 }, (_, n) => uploadFile(client, fileOf(lines) + '\n'.repeat(n))),
  )
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  const sum = answers.reduce((stored, { body }) => stored + body.stats.stored, 0)
  t.equal(sum, 250)
  t.equal((await textsOf(client)).length, 250)
  t.equal((await client.caller()).keyRow.rawUnits, 250)
})

t.test('200: a memory that was deleted may be uploaded again, and again', async t => {
  const client = await newClient()
  const { vault } = (await client.caller()).scope
  for (let round = 0; round < 3; round++) {
    t.match((await uploadFile(client, [said('Ada is a cat')])).body.stats, {
      stored: 1,
      skipped: 0,
    })
    t.match((await uploadFile(client, [said('Ada is a cat')])).body.stats, {
      stored: 0,
      skipped: 1,
    })
    t.same(await textsOf(client), ['Ada is a cat'])
    await tombstoneDocuments(backend, vault)
    t.same(await textsOf(client), [])
  }
})

t.test('200: after a vault or a session was cleared the file is stored anew', async t => {
  const client = await newClient()
  const { vault } = (await client.caller()).scope
  const inSession = { 'x-session-id': 'trip' }
  await uploadFile(client, [said('Naxos')])
  await uploadFile(client, [said('Naxos')], inSession)
  await backend.postgres.transaction(tx => raiseSessionEpoch(tx, vault, 'trip'))
  t.match((await uploadFile(client, [said('Naxos')], inSession)).body.stats, { stored: 1 })
  t.match((await uploadFile(client, [said('Naxos')])).body.stats, { stored: 0, skipped: 1 })
  await backend.postgres.transaction(tx => raiseEpoch(tx, vault))
  t.match((await uploadFile(client, [said('Naxos')])).body.stats, { stored: 1 })
})

t.test('200: a session is a place of its own', async t => {
  const client = await newClient()
  const header = { 'x-session-id': 'trip' }
  await uploadFile(client, [said('The ferry to Naxos leaves at nine')])
  const { body } = await uploadFile(client, [said('The ferry to Naxos leaves at nine')], header)
  t.match(body, { vault: 'session', stats: { stored: 1 } })
  const search = { query: 'ferry', limit: 5 }
  const inSession = await client.post('/v1/memory/search', search, header)
  t.match(inSession.body, { totalMemories: 1, memories: [{ source: 'session' }] })
  t.equal(inSession.body.reflection.unconsolidated.raw.units, 1, 'the debt counts the core vault')
})

t.test('200: a faulty line does not sink the others', async t => {
  const client = await newClient()
  const lines = [
    '{"content":"good"}',
    'nonsense',
    '',
    '{"content":""}',
    '{"content":"  "}',
    '{"contents":"x"}',
    '{"content":"x","timestmp":1}',
    '{"content":"x","role":"tool"}',
    '{"content":"x","timestamp":1767225600000000}',
    '{"content":"x","timestamp":"now"}',
    '[1]',
    `${'['.repeat(70)}${']'.repeat(70)}`,
    '{"content":"x","timestamp":1767225600}',
    '{"content":"also good"}',
  ]
  const { status, body } = await uploadFile(client, lines.join('\n'))
  t.equal(status, 200)
  t.match(body, {
    status: 'partial',
    stats: { inputItems: 13, memories: 2, stored: 2, failed: 11, total: 13, processed: 2 },
    message: '2 memories stored, 11 faulty lines left out',
  })
  t.match(body.errors, [
    { line: 2, error: 'not valid JSON' },
    { line: 4, error: /content.*1 character/ },
    { line: 5, error: 'content is blank' },
    { line: 6, error: 'unknown field contents; did you mean content?' },
    { line: 7, error: 'unknown field timestmp; did you mean timestamp?' },
    { line: 8, error: /role.*user, assistant, system/ },
    { line: 9, error: /timestamp must be at most 253402300799999/ },
    { line: 10, error: /timestamp must be a date.*or milliseconds/ },
    { line: 11, error: 'the line must be an object, not a list' },
    { line: 12, error: /the line nests deeper than 64 levels/ },
    { line: 13, error: /timestamp must be in milliseconds.*looks like seconds/ },
  ])
  t.same((await textsOf(client)).sort(), ['also good', 'good'])
})

t.test('400: no line is good; the first twenty are named, and nothing is left', async t => {
  const client = await newClient()
  const refused = await uploadFile(client, Array.from({ length: 250 }, () => 'x').join('\n'))
  t.equal(refused.status, 400)
  t.equal(refused.body.error, 'No line of the file can be stored')
  t.match(refused.body.hint, /^line 1: not valid JSON; line 2: .*; line 20: not valid JSON$/)
  t.same(await textsOf(client), [])
})

t.test('200: CRLF, a byte order mark, blank lines, no last newline, odd characters', async t => {
  const client = await newClient()
  const bytes = Buffer.concat([
    Buffer.from('\uFEFF{"content":"first","timestamp":1700000000001}\r\n\r\n  \r\n'),
    Buffer.from('{"content":"lone \\ud800 and nul \\u0000","timestamp":1700000000002}\r\n'),
    Buffer.from([0x7b, 0xff, 0xfe, 0x7d, 0x0a]),
    Buffer.from('{"content":"日本 🚲","timestamp":1700000000003}'),
  ])
  const { body } = await uploadFile(client, bytes, { 'content-type': 'text/plain; charset=utf-8' })
  t.match(body, { status: 'partial', stats: { inputItems: 4, stored: 3, failed: 1 } })
  t.same(body.errors, [{ line: 5, error: 'not valid UTF-8' }])
  t.same(await textsOf(client), ['first', 'lone \uFFFD and nul \uFFFD', '日本 🚲'])
})

t.test('200: a long line becomes several memories, joined they are the line', async t => {
  const client = await newClient()
  const content = Array.from({ length: 400 }, (_, n) => `Sentence number ${n} stands here.`).join(
    ' ',
  )
  const { body } = await uploadFile(client, [said(content)])
  t.equal(body.stats.inputItems, 1)
  t.ok(body.stats.memories > 3)
  t.equal(body.stats.stored, body.stats.memories)
  t.equal((await textsOf(client)).join(''), content)
  t.match((await uploadFile(client, [said(content)])).body.stats, {
    stored: 0,
    skipped: body.stats.stored,
  })
})

t.test('200: lines without a time keep their order', async t => {
  const client = await newClient()
  const lines = Array.from({ length: 220 }, (_, n) => ({ content: `step ${n}` }))
  await uploadFile(client, lines)
  t.same(
    await textsOf(client),
    lines.map(({ content }) => content),
  )
})

t.test('200: gzip is unpacked', async t => {
  const client = await newClient()
  const body = gzipSync(fileOf([said('small'), said('smaller', 1)]))
  t.match(await uploadFile(client, body, { 'content-encoding': 'gzip' }), {
    status: 200,
    body: { stats: { stored: 2 } },
  })
})

t.test('200: another process sees what was uploaded at its next request', async t => {
  const client = await newClient()
  const second = await createTestBackend(t, { config: backend.config })
  const elsewhere = await startTestApi(t, second, client.key)
  await elsewhere.post('/v1/memory/search', { query: 'warm', limit: 1 })
  await uploadFile(client, [said('The wifi password is hidden under the fern')])
  const { body } = await elsewhere.post('/v1/memory/search', { query: 'wifi password', limit: 1 })
  t.match(body.memories, [{ content: /fern/ }])
})

t.test('200: an Idempotency-Key answers the first answer again; with another file 400', async t => {
  const client = await newClient()
  const header = { 'idempotency-key': 'first' }
  const first = await uploadFile(client, [said('once')], header)
  t.equal(first.status, 200)
  t.same((await uploadFile(client, [said('once')], header)).body, first.body)
  const other = await uploadFile(client, [said('other')], header)
  t.match(other, { status: 400, body: { error: /Idempotency-Key/ } })
  t.same(await textsOf(client), ['once'])
  t.equal(await stagedIn(backend), 0)
})

t.test('202: Prefer: respond-async tells the operation, whose outcome is the answer', async t => {
  const client = await newClient()
  const lines = Array.from({ length: 350 }, (_, n) => said(`line ${n}`, n))
  const { status, body } = await uploadFile(client, lines, { prefer: 'respond-async' })
  t.equal(status, 202)
  t.match(body, { status: 'processing', operation_id: String })
  const operation = async () => (await client.get(`/v1/operations/${body.operation_id}`)).body
  await waitUntil('stored', async () => (await operation()).state === 'done')
  t.match(await operation(), {
    kind: 'upload',
    progress: { done: 350, total: 350 },
    outcome: { status: 200, body: { status: 'complete', stats: { stored: 350 } } },
  })
  t.equal(await stagedIn(backend), 0, 'the lines are gone with the work')
})

t.test('202: the same file joins the work that is under way for it', async t => {
  const client = await newIdleClient()
  const async = { prefer: 'respond-async' }
  const first = await uploadFile(client, [said('once')], async)
  const second = await uploadFile(client, [said('once')], async)
  t.equal(second.body.operation_id, first.body.operation_id)
  const other = await uploadFile(client, [said('once')], { ...async, 'x-session-id': 'trip' })
  t.not(other.body.operation_id, first.body.operation_id)
  t.equal(await stagedIn(idle), 2)

  const cancelled = await client.send('DELETE', `/v1/operations/${first.body.operation_id}`)
  t.match(cancelled, { status: 200, body: { state: 'cancelled' } })
  t.equal(await stagedIn(idle), 1, 'its lines go with it')
})

t.test('202: one upload does not stand in the way of another vault', async t => {
  const [large, small] = [await newIdleClient(), await newIdleClient()]
  const lines = Array.from({ length: 500 }, (_, n) => said(`line ${n}`, n))
  const async = { prefer: 'respond-async' }
  const one = (await uploadFile(large, lines, async)).body.operation_id
  const two = (await uploadFile(small, [said('x')], async)).body.operation_id
  const jobs = await jobsOf<{ operation: string }>(idle, 'upload')
  const order = jobs
    .filter(({ data }) => [one, two].includes(data.operation))
    .toSorted((a, b) => b.priority - a.priority)
    .slice(0, 2)
  t.same(order.map(({ data }) => data.operation).sort(), [one, two].sort())
})
