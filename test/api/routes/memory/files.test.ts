import t from 'tap'
import { documentLimits } from '#api/routes/files/read-in-process.ts'
import type { TestClient } from '#test/support/start/api.ts'
import { docxOf, pdfOf } from '#test/support/start/documents.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import { removeEarlierVersion } from '#shared/vault/delete/remove-earlier-version.ts'
import { jobsOf, type Job } from '#test/support/checks/observe-jobs.ts'
import { exportLines } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { newClient } = await startService(t, { jobs: ['upload', 'import', 'ingest', 'delete-ids'] })
const idle = await startService(t, { jobs: [] })

const post = (
  client: TestClient,
  query: Record<string, string>,
  body: Buffer | string,
  headers: Record<string, string> = {},
) =>
  client.send('POST', `/v1/memory/files?${new URLSearchParams(query)}`, {
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body,
  })

const lease = pdfOf([
  ['The lease of the flat runs for two years.'],
  [],
  ['The deposit of the flat is 900 euros.'],
])

t.test('200: a question finds the line with its file and page', async t => {
  const client = await newClient()
  const { status, body } = await post(
    client,
    { name: 'lease.pdf', metadata: '{"home":"Lisbon","section":"mine"}' },
    lease,
  )
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, {
    status: 'complete',
    name: 'lease.pdf',
    kind: 'pdf',
    pages: 2,
    left_out: [{ what: 'pages without text, such as scans', count: 1 }],
    replaced: 0,
    memories: 2,
    stored: 2,
    skipped: 0,
    failed: 0,
  })
  const found = await client.post('/v1/memory/search', {
    query: 'how much is the deposit?',
    limit: 3,
  })
  t.match(found.body.memories[0], {
    content: 'The deposit of the flat is 900 euros.',
    role: 'system',
    origin: 'import',
    metadata: {
      file: 'lease.pdf',
      file_id: body.file_id,
      page: 3,
      home: 'Lisbon',
      origin: 'import',
    },
  })
  const told = await client.post('/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'How much is the deposit of the flat?' }],
  })
  t.match(told.body.context, /· lease\.pdf, page 3\] The deposit of the flat is 900 euros\./)
})

t.test('the same file again adds nothing; what was deleted of it comes back', async t => {
  const client = await newClient()
  const first = await post(client, { name: 'lease.pdf', timestamp: '2025-01-01' }, lease)
  const again = await post(client, { name: 'lease.pdf', timestamp: '2026-01-01' }, lease)
  t.match(again.body, { stored: 0, skipped: 2, replaced: 0, file_id: first.body.file_id })
  const lines = await exportLines(client)
  t.same(
    lines.map(({ timestamp }) => timestamp),
    [Date.parse('2025-01-01'), Date.parse('2025-01-01') + 1],
  )
  await client.post('/v1/memory/delete-ids', { ids: [lines[0]!.id] })
  t.match((await post(client, { name: 'lease.pdf' }, lease)).body, { stored: 1, skipped: 1 })
  t.equal((await exportLines(client)).length, 2)
})

t.test('another version replaces what it had, and leaves other files alone', async t => {
  const client = await newClient()
  const page = 'A paragraph that stands in both files.'
  await post(client, { name: 'other.txt' }, page)
  const old = await post(
    client,
    { name: 'a.txt', file_id: 'handbook' },
    `${page}\n\n${'x'.repeat(990)}`,
  )
  t.match(old.body, { file_id: 'handbook', stored: 2 })
  const newer = await post(
    client,
    { name: 'b.md', file_id: 'handbook' },
    `${page}\n\n${'y'.repeat(990)}`,
  )
  t.match(newer.body, { stored: 1, skipped: 1, replaced: 1 })
  const texts = (await exportLines(client)).map(({ content }) => content).sort()
  t.same(texts, [page, page, 'y'.repeat(990)])
  const moved = await post(client, { name: 'b.md', file_id: 'handbook', session_id: 's' }, page)
  t.match(moved.body, { stored: 1, replaced: 2 })
  t.same(
    (await client.get('/v1/memory/files')).body.items.map((item: object) => ({
      ...item,
      tokens: 0,
      stored_at: '',
    })),
    [
      {
        file_id: (await post(client, { name: 'other.txt' }, page)).body.file_id,
        name: 'other.txt',
        session_id: null,
        memories: 1,
        pages: 0,
        tokens: 0,
        stored_at: '',
        kept_bytes: 0,
      },
      {
        file_id: 'handbook',
        name: 'b.md',
        session_id: 's',
        memories: 1,
        pages: 0,
        tokens: 0,
        stored_at: '',
        kept_bytes: 0,
      },
    ].sort((one, other) => (one.file_id < other.file_id ? -1 : 1)),
  )
})

t.test('a file is deleted as one, in the core and in sessions', async t => {
  const client = await newClient()
  const other = await newClient()
  const { body } = await post(client, { name: 'lease.pdf' }, lease)
  await post(other, { name: 'lease.pdf' }, lease)
  const gone = await client.send('DELETE', `/v1/memory/files?file_id=${body.file_id}`)
  t.same([gone.status, gone.body], [200, { file_id: body.file_id, deleted: 2 }])
  t.same(await exportLines(client), [])
  t.equal((await exportLines(other)).length, 2, 'of another vault it stays')
  t.same((await client.get('/v1/memory/files')).body, {
    items: [],
    has_more: false,
    next_cursor: null,
  })
  t.equal((await client.send('DELETE', `/v1/memory/files?file_id=${body.file_id}`)).status, 404)
})

t.test('files are listed page by page; those of a cleared session are not', async t => {
  const client = await newClient()
  for (const file_id of ['c', 'a', 'b'])
    await post(client, { name: 'n.txt', file_id }, `Text of ${file_id}`)
  await post(client, { name: 'n.txt', file_id: 's', session_id: 's' }, 'Text of s')
  const first = (await client.get('/v1/memory/files?limit=3')).body
  t.same(
    first.items.map(({ file_id }: { file_id: string }) => file_id),
    ['a', 'b', 'c'],
  )
  const rest = (
    await client.get(`/v1/memory/files?cursor=${encodeURIComponent(first.next_cursor)}`)
  ).body
  t.same(
    rest.items.map(({ file_id }: { file_id: string }) => file_id),
    ['s'],
  )
  await client.send('DELETE', '/v1/memory', {
    headers: { 'X-Session-ID': 's', prefer: 'respond-async' },
  })
  t.equal((await client.get('/v1/memory/files')).body.items.length, 3)
})

/** Runs the last job of an upload, as a worker does. */
async function runLastStep(operation: string): Promise<void> {
  const jobs = await jobsOf<StepJob>(idle.backend, 'upload')
  const [{ data }] = jobs.filter(job => job.data.operation === operation).slice(-1) as [
    Job<StepJob>,
  ]
  const step = await storeChunk(idle.backend, data)
  if (step.state === 'removes-earlier') await removeEarlierVersion(idle.backend, step.chunk)
}

t.test(
  'the earlier version is told until the newer one is stored, and stays if that is given up',
  async t => {
    const client = await idle.newClient()
    const send = async (text: string): Promise<string> =>
      (await post(client, { name: 'rent.txt' }, text, { prefer: 'respond-async' })).body
        .operation_id
    const texts = async () => (await exportLines(client)).map(({ content }) => content).sort()
    const kept = `The flat has ${'many '.repeat(190)}rooms.`
    const earlier = [`The rent is ${'about '.repeat(150)}900 euros.`, kept]
    const newer = [kept, `The rent is ${'about '.repeat(150)}950 euros.`]
    const first = await send(earlier.join('\n\n'))
    await runLastStep(first)
    await runLastStep(first)
    t.same(await texts(), earlier.toSorted())

    const givenUp = await send(newer.join('\n\n'))
    t.same(await texts(), earlier.toSorted(), 'accepted is not stored')
    await client.send('DELETE', `/v1/operations/${givenUp}`)
    t.same(await texts(), earlier.toSorted(), 'given up')

    const operation = await send(newer.join('\n\n'))
    const told = async () => (await client.get(`/v1/operations/${operation}`)).body
    await runLastStep(operation)
    t.same(await texts(), [...earlier, newer[1]].toSorted(), 'all of both')
    t.equal((await told()).state, 'running')
    await runLastStep(operation)
    t.same(await texts(), newer.toSorted())
    t.match(await told(), {
      state: 'done',
      outcome: { body: { stats: { memories: 2, stored: 1, skipped: 1, replaced: 1 } } },
    })
  },
)

t.test('what a client says in metadata makes no memory a part of a file', async t => {
  const client = await newClient()
  const file_id = 'handbook'
  await post(client, { name: 'a.txt', file_id }, 'The kitchen closes at nine.')
  const metadata = { file: 'a.txt', file_id, page: 1 }
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'I read in the handbook that tea is free.' }],
    metadata,
  })
  await client.send('POST', '/v1/memory/upload', {
    headers: { 'content-type': 'application/x-ndjson' },
    body: JSON.stringify({ content: 'My own note on the handbook.', metadata }),
  })
  const listed = (await client.get('/v1/memory/files')).body.items
  t.match(listed, [{ file_id, memories: 1 }])
  const newer = await post(client, { name: 'a.txt', file_id }, 'The kitchen closes at ten.')
  t.match(newer.body, { stored: 1, replaced: 1 })
  const gone = await client.send('DELETE', `/v1/memory/files?file_id=${file_id}`)
  t.same(gone.body, { file_id, deleted: 1 })
  t.same((await exportLines(client)).map(({ content }) => content).sort(), [
    'I read in the handbook that tea is free.',
    'My own note on the handbook.',
  ])
})

t.test('a file that is exported and imported is one: listed, replaced and deleted', async t => {
  const [client, other] = [await newClient(), await newClient()]
  const { body } = await post(client, { name: 'lease.pdf' }, lease)
  const lines = await exportLines(client)
  t.same(
    lines.map(line => line['file_id']),
    [body.file_id, body.file_id],
  )
  await other.send('POST', '/v1/memory/import', {
    headers: { 'content-type': 'application/x-ndjson' },
    body: lines.map(line => JSON.stringify(line)).join('\n'),
  })
  const listed = (await other.get('/v1/memory/files')).body.items
  t.match(listed, [{ file_id: body.file_id, name: 'lease.pdf', memories: 2, pages: 2 }])
  const newer = await post(other, { name: 'lease.pdf' }, pdfOf([['The lease has ended.']]))
  t.match(newer.body, { stored: 1, replaced: 2 })
  t.equal((await exportLines(client)).length, 2, 'that of the first vault stays')
})

t.test('400, 413, 415: bad files and bad requests change nothing', async t => {
  const client = await newClient()
  const cases: [
    number,
    RegExp,
    Record<string, string>,
    Buffer | string,
    Record<string, string>?,
  ][] = [
    [400, /name/, {}, 'x'],
    [400, /filename/, { name: 'a.txt', filename: 'a' }, 'x'],
    [400, /metadata must be a JSON object/, { name: 'a.txt', metadata: '[1]' }, 'x'],
    [
      400,
      /more than 16 fields/,
      {
        name: 'a.txt',
        metadata: JSON.stringify(
          Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`f${n}`, 1])),
        ),
      },
      'x',
    ],
    [400, /is empty/, { name: 'a.txt' }, ''],
    [
      400,
      /has no text \(pages without text, such as scans: 2\)/,
      { name: 'a.pdf' },
      pdfOf([[], []]),
    ],
    [400, /is encrypted/, { name: 'a.pdf' }, pdfOf([['x']], { encrypted: true })],
    [
      415,
      /an archive, and no document/,
      { name: 'a.zip' },
      Buffer.from('504b0506000000000000000000000000000000000000', 'hex'),
    ],
    [
      415,
      /Content-Type/,
      { name: 'a.txt' },
      'x',
      { 'content-type': 'multipart/form-data; boundary=x' },
    ],
  ]
  for (const [status, error, query, body, headers] of cases) {
    const answer = await post(client, query, body, headers)
    t.equal(answer.status, status, `${error}: ${JSON.stringify(answer.body)}`)
    t.match(answer.body.error, error)
  }
  t.same(await exportLines(client), [])
})

t.test('413: a file that takes more than its limits is ended', async t => {
  const client = await newClient()
  const { cpuSeconds } = documentLimits
  t.teardown(() => (documentLimits.cpuSeconds = cpuSeconds))
  documentLimits.cpuSeconds = 0.01
  const answer = await post(client, { name: 'slow.docx' }, docxOf(['x']))
  t.equal(answer.status, 413)
  t.match(answer.body, {
    error: 'slow.docx takes more than 0.01 seconds to read',
    hint: 'Divide it, or send its text',
  })
  documentLimits.cpuSeconds = cpuSeconds
  t.equal(
    (await post(client, { name: 'slow.docx' }, docxOf(['x']))).status,
    200,
    'the next one is read',
  )
})

t.test('409: another version while one is being stored; the same one joins it', async t => {
  const client = await idle.newClient()
  const headers = { prefer: 'respond-async' }
  const first = await post(client, { name: 'a.txt' }, 'One', headers)
  t.equal(first.status, 202)
  t.match(first.body, { status: 'processing', name: 'a.txt', kind: 'text' })
  t.equal(
    (await post(client, { name: 'a.txt' }, 'One', headers)).body.operation_id,
    first.body.operation_id,
  )
  const other = await post(client, { name: 'a.txt' }, 'Two', headers)
  t.match([other.status, other.body.error], [409, 'This file is being stored'])
  t.equal(
    (await client.send('DELETE', `/v1/memory/files?file_id=${first.body.file_id}`)).status,
    409,
  )
  await client.send('DELETE', `/v1/operations/${first.body.operation_id}`)
  t.equal((await post(client, { name: 'a.txt' }, 'Two', headers)).status, 202)
})

t.test('an Idempotency-Key answers once; a policy masks what is private, but no id', async t => {
  const client = await newClient()
  await client.send('PUT', '/v1/account/policy', {
    body: { redaction: { mode: 'redact', kinds: ['email', 'ip'] } },
  })
  const headers = { 'Idempotency-Key': 'k-1' }
  const text = 'Write to ines@example.com about the boiler.'
  const first = await post(client, { name: 'a.txt' }, text, headers)
  t.equal(first.status, 200, JSON.stringify(first.body))
  const again = await post(client, { name: 'a.txt' }, text, headers)
  t.same(again.body, first.body)
  t.notMatch((await exportLines(client))[0]!.content, /ines@example/)
  t.match((await post(client, { name: 'a.txt' }, text)).body, {
    stored: 0,
    skipped: 1,
    replaced: 0,
  })
  const named = await post(client, { name: 'a.txt', file_id: '10.20.30.40' }, text)
  t.match([named.status, named.body.error], [400, 'file_id is of a kind that the policy keeps out'])
})
