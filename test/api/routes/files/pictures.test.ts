import t, { type Test } from 'tap'
import type { TestClient } from '#test/support/start/api.ts'
import { startRecordingServer } from '#test/support/doubles/recording-server.ts'
import { storeChunk } from '#shared/vault/bulk/store-chunk.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import { docxOf, drawn, pictureOf, pptxOf } from '#test/support/start/documents.ts'
import { countRows, readRows } from '#test/support/checks/observe.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { exportLines } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

/** A model that sees: it says of each picture what it was told to say next, with the status of that. */
async function startEyes(t: Test) {
  const said: (string | { status: number } | { text: string })[] = []
  const server = await startRecordingServer(t, async (_, answer) => {
    const next = said.shift() ?? 'A bar chart of the rent by year.'
    const status = typeof next === 'object' && 'status' in next ? next.status : 200
    answer.head(status, { 'content-type': 'application/json' })
    const content =
      typeof next === 'object' && 'text' in next ? next.text : JSON.stringify({ caption: next })
    const usage = { prompt_tokens: 900, completion_tokens: 30 }
    const choices = [{ message: { role: 'assistant', content }, finish_reason: 'stop' }]
    await answer.write(JSON.stringify({ choices, usage }))
    answer.end()
  })
  const asked = () => server.requests.map(({ body }) => JSON.parse(body.toString()))
  return { server, said, asked }
}

const eyes = await startEyes(t)
const env = {
  PROVIDERS: 'eyes',
  EYES_BASE_URL: `${eyes.server.origin}/v1`,
  EYES_API_KEY: 'sk-of-the-operator',
  CAPTIONS: 'eyes/big-eye',
}
const jobs = ['upload', 'delete-ids'] as const
const { backend, newClient } = await startService(t, { env, jobs })
const blind = await startService(t, { jobs })
const idle = await startService(t, { env, jobs: [] })

const post = (
  client: TestClient,
  name: string,
  body: Buffer | string,
  headers: Record<string, string> = {},
) =>
  client.send('POST', `/v1/memory/files?${new URLSearchParams({ name })}`, {
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body,
  })

const chart = pictureOf('png', 'chart')
const report = docxOf([{ heading: 'Rent' }, 'The rent rose twice.', drawn('rId1'), drawn('rId2')], {
  'word/_rels/document.xml.rels':
    '<Relationships><Relationship Id="rId1" Target="media/image1.png"/><Relationship Id="rId2" Target="media/icon.png"/></Relationships>',
  'word/media/image1.png': chart,
  'word/media/icon.png': pictureOf('png', 'icon', 500),
})

t.beforeEach(() => {
  eyes.server.requests.length = 0
  eyes.said.length = 0
})

t.test('nothing of a picture goes out unless the operator says where', async t => {
  const client = await blind.newClient()
  t.match((await post(client, 'rent.docx', report)).body, {
    stored: 1,
    left_out: [{ what: 'pictures', count: 2 }],
    kept: false,
  })
  const alone = await post(client, 'chart.png', chart)
  t.match(
    [alone.status, alone.body.error],
    [415, 'chart.png is no text, and of no kind that can be read'],
  )
  t.same(eyes.server.requests, [])
  t.equal(await countRows(blind.backend, 'kept_files'), 0)
})

t.test('a picture becomes a memory of its file by what the model says of it', async t => {
  const client = await newClient()
  const { status, body } = await post(client, 'rent.docx', report)
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, { status: 'complete', memories: 2, stored: 2, failed: 0 })
  t.same(body.left_out, [{ what: 'pictures', count: 1 }], 'the icon is counted')
  const found = await client.post('/v1/memory/search', { query: 'bar chart', limit: 1 })
  t.match(found.body.memories[0], {
    content: 'Picture: A bar chart of the rent by year.',
    role: 'system',
    origin: 'model',
    metadata: { file: 'rent.docx', file_id: body.file_id, section: 'Rent', origin: 'model' },
  })
  const [{ model, messages, ...asked }] = eyes.asked()
  t.equal(eyes.server.requests.length, 1)
  t.match(
    new Map(
      eyes.server.requests[0]!.headers.map(([name, value]) => [name.toLowerCase(), value]),
    ).get('authorization'),
    'Bearer sk-of-the-operator',
  )
  t.equal(model, 'big-eye')
  t.match(messages[1].content[1], {
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${chart.toString('base64')}` },
  })
  t.notMatch(JSON.stringify([messages[0], asked]), /rent/i, 'no word of the file goes along')
  const { scope } = await client.caller()
  t.match(
    await readRows(
      backend,
      `select kind, model, input_tokens, output_tokens, memory_tokens from usage_events
       where vault = $1 and kind = 'caption'`,
      [scope.vault],
    ),
    [
      {
        kind: 'caption',
        model: 'eyes/big-eye',
        input_tokens: 900,
        output_tokens: 30,
        memory_tokens: 0,
      },
    ],
  )
  t.equal(
    await countRows(backend, { table: 'kept_files', vault: scope.vault }),
    0,
    'it is staged no more',
  )
})

t.test('the same file again is asked about no more, whatever the model would say', async t => {
  const client = await newClient()
  await post(client, 'rent.docx', report)
  eyes.said.push('Something else.')
  const again = await post(client, 'rent.docx', report)
  t.match(again.body, { stored: 0, skipped: 2, replaced: 0 })
  t.equal(eyes.server.requests.length, 1)
  await client.send('DELETE', `/v1/memory/files?file_id=${again.body.file_id}`)
  t.match((await post(client, 'rent.docx', report)).body, { stored: 2 })
  t.same(
    (await exportLines(client)).map(({ content }) => content).sort(),
    ['Picture: Something else.', 'The rent rose twice.']
      .map(text => (text.startsWith('The') ? `Rent\n${text}` : text))
      .sort(),
  )
})

t.test('a model that refuses or says nothing fails no upload: the picture is counted', async t => {
  for (const said of [
    { status: 401 },
    { text: 'I see a chart.' },
    '',
    { text: '{"caption": 7}' },
  ]) {
    const client = await newClient()
    eyes.said.push(said)
    const { status, body } = await post(client, 'rent.docx', report)
    t.match(
      [status, body.status, body.memories, body.stored, body.failed],
      [200, 'complete', 1, 1, 0],
    )
    t.same(body.left_out, [
      { what: 'pictures', count: 1 },
      { what: 'pictures without a caption', count: 1 },
    ])
    const { body: operation } = await client.get(`/v1/operations/${body.operation_id}`)
    t.match(operation.outcome.body.stats, { memories: 1, pictures_left_out: 1 })
    t.match(
      (await post(client, 'rent.docx', report)).body,
      { stored: 1, skipped: 1 },
      'it may be sent again',
    )
  }
})

t.test('a file that is a picture: of one without a caption nothing is left', async t => {
  const client = await newClient()
  t.match((await post(client, 'chart.bin', chart)).body, {
    kind: 'image',
    pages: 0,
    stored: 1,
    left_out: [],
  })
  await client.send('PUT', '/v1/account/policy', { body: { keep_files: true } })
  eyes.said.push({ status: 500 }, { status: 500 })
  const { body } = await post(client, 'photo.jpg', pictureOf('jpeg', 'photo'))
  t.match(body, {
    memories: 0,
    kept: false,
    left_out: [{ what: 'pictures without a caption', count: 1 }],
  })
  const { scope } = await client.caller()
  t.equal(await countRows(backend, { table: 'kept_files', vault: scope.vault }), 0)
  const huge = await post(client, 'huge.png', pictureOf('png', 'huge', 4_000_000))
  t.match([huge.status, huge.body.error], [400, 'huge.png has no text (pictures: 1)'])
})

t.test('pictures of slides know their slide, in a session, at the time of the file', async t => {
  const client = await newClient()
  const slides = pptxOf(
    [{ texts: ['Harbour'] }, { texts: [], drawn: '<p:pic><a:blip r:embed="rId9"/></p:pic>' }],
    {
      'ppt/slides/_rels/slide11.xml.rels':
        '<Relationships><Relationship Id="rId9" Target="../media/image1.webp"/></Relationships>',
      'ppt/media/image1.webp': pictureOf('webp', 'crane'),
    },
  )
  const query = 'name=harbour.pptx&session_id=s&timestamp=2025-01-01'
  const { body } = await client.send('POST', `/v1/memory/files?${query}`, {
    headers: { 'content-type': 'application/octet-stream' },
    body: slides,
  })
  t.match(body, { stored: 2, pages: 1, left_out: [{ what: 'slides without text', count: 1 }] })
  const lines = await exportLines(client)
  t.match(lines.at(-1), {
    content: /^Picture: /,
    session_id: 's',
    timestamp: Date.parse('2025-01-01') + 1,
    metadata: { page: 2 },
  })
})

t.test('the policy on private data applies to a caption', async t => {
  const client = await newClient()
  const decide = (mode: string) =>
    client.send('PUT', '/v1/account/policy', { body: { redaction: { mode, kinds: ['email'] } } })
  await decide('redact')
  eyes.said.push('A letter to ines@example.com.', 'A letter to ines@example.com.')
  await post(client, 'letter.png', chart)
  t.same(
    (await exportLines(client)).map(({ content }) => content),
    ['Picture: A letter to [redacted:email].'],
  )
  await decide('block')
  t.match((await post(client, 'other.png', chart)).body, { stored: 0, left_out: [{ count: 1 }] })
})

t.test('an Idempotency-Key is good while the first try is under way', async t => {
  const client = await idle.newClient()
  const headers = { prefer: 'respond-async', 'idempotency-key': 'k' }
  const first = await post(client, 'rent.docx', report, headers)
  const again = await post(client, 'rent.docx', report, headers)
  t.match([again.status, again.body.operation_id], [202, first.body.operation_id])
  t.same(eyes.server.requests, [], 'nobody is asked before it is accepted')
  const steps = await jobsOf<StepJob>(idle.backend, 'upload')
  const { data } = steps.find(job => job.data.operation === first.body.operation_id)!
  await storeChunk(idle.backend, data)
  await storeChunk(idle.backend, data)
  t.equal(eyes.server.requests.length, 1)
  t.equal((await exportLines(client)).length, 2)
})
