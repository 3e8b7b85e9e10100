import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import t from 'tap'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { respondJson, respondWith } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { countRows } from '#test/support/checks/observe.ts'

/** With memory off no limit of this service is below that of a provider. */

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
await startJobWorkers(backend, 'ingest')
const key = await buildKey(backend)
const last = () => provider.requests.at(-1)!
const headers = {
  'x-memory-key': key,
  'x-provider-key': 'sk-1',
  'content-type': 'application/json',
}
const picture = 'A'.repeat(20 * 1024 * 1024)

const post = async (path: string, body: string, more: Record<string, string> = {}) => {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, ...more },
    body,
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

t.test('200: a body over 20 MiB is streamed unread, with its model renamed', async t => {
  const cases: [path: string, head: string, sentHead: string, to: string][] = [
    [
      '/v1/chat/completions',
      '{ "model" : "groq/x/y",',
      '{ "model" : "x/y",',
      '/groq/v1/chat/completions',
    ],
    [
      '/v1/responses',
      '{"stream":false,"model":"xai/g", ',
      '{"stream":false,"model":"g", ',
      '/xai/v1/responses',
    ],
    ['/v1/messages', '{"model":"claude-x",', '{"model":"claude-x",', '/anthropic/v1/messages'],
    [
      '/v1beta/models/gemini-x:generateContent',
      '{',
      '{',
      '/google/v1beta/models/gemini-x:generateContent',
    ],
    ['/v1/embeddings', '{"model":"openai/e",', '{"model":"e",', '/openai/v1/embeddings'],
  ]
  const rest = `"messages":[{"role":"user","content":"${picture}"}]}`
  for (const [path, head, sentHead, to] of cases) {
    provider.respondNext(respondJson('{ "id":"x" }'))
    const answer = await post(`${path}?memory=off`, head + rest)
    t.equal(answer.status, 200, path)
    t.equal(answer.text, '{ "id":"x" }')
    t.equal(last().url, to)
    t.ok(last().body.equals(Buffer.from(sentHead + rest)), 'every other byte is the client’s')
    t.equal(findHeader(last().headers, 'content-length'), String(last().body.length))
    if (path !== '/v1/embeddings') t.equal(answer.headers.get('x-memory-status'), 'off')
  }
})

t.test('400: a body over 20 MiB whose model is no JSON', async t => {
  const asked = provider.requests.length
  for (const path of ['/v1/embeddings', '/v1/chat/completions?memory=off']) {
    const { status, text } = await post(path, `{"model":"gpt\\q","input":"${picture}"}`)
    t.equal(status, 400, path)
    t.match(text, /The body is not valid JSON/)
  }
  t.equal(provider.requests.length, asked)
})

/** As a client that reads no answer before all of its body is sent. */
async function sendWhole(path: string, body: string, more: Record<string, string> = {}) {
  const sending = request(base + path, { method: 'POST', headers: { ...headers, ...more } })
  const answer = once(sending, 'response')
  sending.end(body)
  await once(sending, 'finish')
  const [response] = (await answer) as [IncomingMessage]
  return { status: response.statusCode, text: await readText(response) }
}

t.test('400: a long body without the model that its route needs is read to its end', async t => {
  const asked = provider.requests.length
  const json = await sendWhole('/v1/embeddings', `{"input":"${picture}"}`)
  t.equal(json.status, 400)
  t.match(json.text, /model/)
  const part = (name: string, value: string) =>
    `--b0und\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const body = `${part('model', '')}${part('file', picture)}--b0und--\r\n`
  const form = await sendWhole('/v1/audio/transcriptions', body, {
    'content-type': 'multipart/form-data; boundary=b0und',
  })
  t.equal(form.status, 400)
  t.match(form.text, /model/)
  t.equal(provider.requests.length, asked)
})

t.test('200: a model that comes late is not waited for', async t => {
  provider.respondNext(respondJson('{}'))
  const body = `{"messages":["${picture}${picture}"],"model":"groq/x"}`
  t.equal((await post('/v1/chat/completions', body, { 'x-memory-mode': 'off' })).status, 200)
  t.equal(last().url, '/openai/v1/chat/completions')
  t.ok(last().body.equals(Buffer.from(body)))
})

t.test(
  '413, 400: with memory on the limit stays, and no answer is kept for a long body',
  async t => {
    const body = `{"model":"gpt-5","messages":["${picture}"]}`
    t.equal((await post('/v1/chat/completions', body)).status, 413)
    const keyed = await post('/v1/chat/completions?memory=off', body, { 'idempotency-key': 'k' })
    t.equal(keyed.status, 400)
    t.match(keyed.text, /Idempotency-Key/)
  },
)

t.test('200: nesting that a provider may take passes', async t => {
  const deep = '['.repeat(500) + ']'.repeat(500)
  for (const path of ['/v1/chat/completions?memory=off', '/v1/embeddings']) {
    provider.respondNext(respondJson('{}'))
    const body = `{"model":"gpt-5","x":${deep},"messages":[]}`
    t.equal((await post(path, body)).status, 200)
    t.equal(last().body.toString(), body)
  }
})

t.test('200: an upload without a length passes', async t => {
  const piece = Buffer.alloc(1024 * 1024, 7)
  const pieces = 8
  async function* upload() {
    for (let index = 0; index < pieces; index++) yield piece
  }
  provider.respondNext(respondJson({ id: 'file-1' }))
  const response = await fetch(`${base}/v1/files`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'multipart/form-data; boundary=x' },
    body: Readable.toWeb(Readable.from(upload())) as unknown as string,
    duplex: 'half',
  } as RequestInit)
  t.equal(response.status, 200)
  t.equal(last().body.length, pieces * piece.length)
})

t.test('an answer of known length says so, and ends when it is stored', async t => {
  const answer = JSON.stringify({
    choices: [{ index: 0, message: { content: 'Noted ☕.' }, finish_reason: 'stop' }],
  })
  const bytes = Buffer.from(answer)
  const sized = { 'content-type': 'application/json', 'content-length': String(bytes.length) }
  for (const pieces of [[bytes], [bytes.subarray(0, 9), bytes.subarray(9)]]) {
    provider.respondNext(respondWith(pieces, { headers: sized }))
    const body = JSON.stringify({
      model: 'gpt-5',
      messages: [{ role: 'user', content: 'My cat is called Ada.' }],
    })
    const response = await post('/v1/chat/completions', body)
    t.equal(response.headers.get('content-length'), String(bytes.length))
    t.equal(response.text, answer)
    const open = await countRows(backend, 'open_exchanges')
    t.equal(open, 0, 'its end says that it is stored')
  }
  await waitUntilSettled(backend)
  provider.respondNext(respondWith([], { status: 200, headers: { 'content-length': '0' } }))
  t.equal(
    (await post('/v1/chat/completions?memory=off', '{"model":"gpt-5","messages":[]}')).text,
    '',
  )
})

t.test('200: Gemini takes one content in place of a list', async t => {
  provider.respondNext(respondJson({ candidates: [] }))
  const body = '{"contents":{"parts":[{"text":"Hi"}]}}'
  t.equal((await post('/v1beta/models/gemini-x:generateContent', body)).status, 200)
  t.equal(last().body.toString(), body)
})

t.test('GET /v1/models with a provider key is that provider’s own list', async t => {
  const list = async (more: Record<string, string>) => {
    provider.respondNext(respondJson('{"data":[{"id":"m"}],"object":"list"}'))
    const response = await fetch(`${base}/v1/models?limit=2`, {
      headers: { 'x-memory-key': key, ...more },
    })
    t.equal(await response.text(), '{"data":[{"id":"m"}],"object":"list"}')
    return last().url
  }
  t.equal(await list({ authorization: 'Bearer sk-1' }), '/openai/v1/models?limit=2')
  t.equal(await list({ authorization: 'Bearer gsk_1' }), '/groq/v1/models?limit=2')
  t.equal(
    await list({ 'x-api-key': 'sk-1', 'anthropic-version': '2023-06-01' }),
    '/anthropic/v1/models?limit=2',
  )
  t.equal(await list({ 'x-api-key': 'sk-ant-1' }), '/anthropic/v1/models?limit=2')
  t.equal(findHeader(last().headers, 'anthropic-version'), '2023-06-01')
})

t.test('the address at which an upload to Google goes on is ours', async t => {
  const google = `${provider.env.GOOGLE_BASE_URL}/upload/v1beta/files?upload_id=u1`
  provider.respondNext(
    respondWith(['{}'], {
      headers: { 'x-goog-upload-url': google, 'x-goog-upload-status': 'active' },
    }),
  )
  const start = await fetch(`${base}/upload/v1beta/files`, {
    method: 'POST',
    headers: {
      ...headers,
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
    },
    body: '{"file":{}}',
  })
  const next = start.headers.get('x-goog-upload-url')!
  t.equal(next, `${base}/upload/v1beta/files?upload_id=u1`)
  t.equal(findHeader(last().headers, 'x-goog-upload-protocol'), 'resumable')
  provider.respondNext(respondJson({ file: {} }))
  const sent = await fetch(next, { method: 'PUT', headers, body: 'bytes' })
  t.equal(sent.status, 200)
  t.equal(last().url, '/google/upload/v1beta/files?upload_id=u1')

  const other = {
    'x-goog-upload-url': 'https://uploads.example:8443/upload/v1beta/files?upload_id=u2',
    'x-goog-upload-control-url': 'https://uploads.example/elsewhere',
  }
  provider.respondNext(respondWith(['{}'], { headers: other }))
  const elsewhere = await fetch(`${base}/upload/v1beta/files`, { method: 'POST', headers })
  const goesOn = elsewhere.headers.get('x-goog-upload-url')
  t.equal(goesOn, `${base}/upload/v1beta/files?upload_id=u2`)
  t.equal(elsewhere.headers.get('x-goog-upload-control-url'), null)
})
