import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import {
  respondJson,
  respondWith,
  respondError,
} from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { sendRaw } from '#test/support/start/raw-http.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startModelProvider(t)

/** Tells when a request begins, where the recorder tells when it has ended. */
const early = { begun: 0, body: '' }
const listener = createServer((request, response) => {
  early.begun++
  request.on('data', chunk => (early.body += String(chunk)))
  request.on('end', () => response.end('{"text":"streamed"}'))
}).listen(0, '127.0.0.1')
await once(listener, 'listening')
t.teardown(() => listener.close())
const earlyUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/v1`

const { backend, base } = await startService(t, {
  env: { ...provider.env, XAI_BASE_URL: earlyUrl },
  jobs: [],
})
const client = createTestClient(base)
const key = await buildKey(backend)
const sk = providerKey('openai')
const headers = { 'x-memory-key': key, authorization: `Bearer ${sk}` }
const last = () => provider.requests.at(-1)!
/** How often something was asked of a provider beside its list of models. */
const calls = () => provider.requests.filter(({ method }) => method === 'POST').length

t.test('200: JSON goes as it comes, the prefix of the model taken off', async t => {
  const paths = ['/v1/audio/speech', '/v1/images/generations', '/v1/embeddings']
  for (const path of paths) {
    const cases = [
      ['{ "input" : "a\\u00e9", "model":"tts-1", "n":1.0 }', 'openai'],
      ['{ "input" : "a\\u00e9", "model":"groq/x/y", "n":1.0 }', 'groq'],
    ] as const
    for (const [body, name] of cases) {
      provider.respondNext(respondJson('{ "data" : [] }', { headers: { 'x-request-id': 'req_9' } }))
      const response = await fetch(`${base + path}?api-version=2`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
      })
      t.equal(response.status, 200)
      t.equal(await response.text(), '{ "data" : [] }')
      t.equal(response.headers.get('x-request-id'), 'req_9')
      t.match(response.headers.get('x-provider-response-ms'), /^\d/)
      t.notOk(response.headers.has('x-memory-status'))
      t.equal(last().url, `/${name}${path}?api-version=2`)
      t.equal(last().body.toString(), body.replace('groq/', ''))
      t.equal(findHeader(last().headers, 'authorization'), `Bearer ${sk}`)
    }
  }
})

const switches =
  '"memory":false, "memory_mode":"off","memory_store" : null,"memory_store_response":true,"session_id":"s","embeddings":"local"'

t.test('200: switches stay here, however the model is named', async t => {
  for (const path of ['/v1/audio/speech', '/v1/images/generations', '/v1/embeddings']) {
    for (const model of ['tts-1', 'openai/tts-1']) {
      for (const body of [
        `{"model":"${model}", "input" : "a\\u00e9",${switches}}`,
        `{ ${switches}, "model":"${model}", "input" : "a\\u00e9"}`,
      ]) {
        provider.respondNext(respondJson('{}'))
        const response = await fetch(`${base}${path}?memory=off&mode=read`, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body,
        })
        t.equal(response.status, 200)
        t.equal(last().url, `/openai${path}`)
        t.match(
          last().body.toString(),
          /^\{ ?"model":"tts-1", "input" : "a\\u00e9"\}$/,
          'and nothing else changes',
        )
      }
    }
  }
})

t.test('200: what only shares the name of a switch is the provider’s', async t => {
  const body =
    '{"memory":"of what","memory_mode":"sepia","session_id":7,"embeddings":["a"],"model":"tts-1","messages":[{"memory":3}]}'
  for (const [sent, got] of [
    [body, body],
    [body.replace('tts-1', 'openai/tts-1'), body],
  ] as const) {
    provider.respondNext(respondJson('{}'))
    t.equal((await client.post('/v1/images/generations', JSON.parse(sent), headers)).status, 200)
    t.equal(last().body.toString(), got)
  }
  const forms = formOf('tts-1', 'model', 10)
  forms.append('memory', 'false')
  provider.respondNext(respondJson('{}'))
  const response = await fetch(`${base}/v1/audio/transcriptions`, {
    method: 'POST',
    headers,
    body: forms,
  })
  t.equal(response.status, 200)
  t.match(last().body.toString('latin1'), /name="memory"\r\n\r\nfalse/)
})

t.test('200: bytes of any kind come back as they are', async t => {
  const sound = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256))
  provider.respondNext(
    respondWith([sound.subarray(0, 7), sound.subarray(7)], {
      headers: { 'content-type': 'audio/mpeg' },
    }),
  )
  const response = await fetch(`${base}/v1/audio/speech`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"model":"tts-1","input":"hello","voice":"alloy"}',
  })
  t.equal(response.headers.get('content-type'), 'audio/mpeg')
  t.ok(Buffer.from(await response.arrayBuffer()).equals(sound))
})

const formOf = (model: string, first: 'model' | 'file', size = 300_000): FormData => {
  const form = new FormData()
  const file = new Blob([new Uint8Array(size).fill(7)], { type: 'audio/mpeg' })
  if (first === 'model') form.append('model', model)
  form.append('file', file, 'model.mp3')
  if (first === 'file') form.append('model', model)
  form.append('language', 'en')
  return form
}

const sent = async (form: FormData, more: Record<string, string> = {}) => {
  const response = await fetch(`${base}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { ...headers, ...more },
    body: form,
  })
  return { status: response.status, text: await response.text() }
}

t.test('200: a form in any order, as it comes or with another name of its model', async t => {
  provider.respondAlways(respondJson({ text: 'hello' }))
  for (const first of ['model', 'file'] as const) {
    for (const model of ['whisper-1', 'groq/whisper-large']) {
      t.match(await sent(formOf(model, first)), { status: 200, text: '{"text":"hello"}' })
      const { body, headers, url } = last()
      t.equal(url, `/${model.startsWith('groq') ? 'groq' : 'openai'}/v1/audio/transcriptions`)
      t.equal(findHeader(headers, 'content-length'), String(body.length))
      const arrived = await new Response(new Uint8Array(body), {
        headers: { 'content-type': findHeader(headers, 'content-type')! },
      }).formData()
      t.equal(arrived.get('model'), model.replace('groq/', ''))
      t.equal((arrived.get('file') as File).size, 300_000)
      t.equal(arrived.get('language'), 'en')
    }
  }
  provider.respondAlways()
})

t.test('200: a recording streams through while it is being sent', async t => {
  const boundary = 'b0und'
  const part = (name: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`
  const head = `${part('model')}listen-1\r\n${part('file')}`
  const tail = `sound\r\n--${boundary}--\r\n`
  const held = Promise.withResolvers<void>()
  async function* parts() {
    yield Buffer.from(head.replace('listen', 'xai/listen'))
    await held.promise
    yield Buffer.from(tail)
  }
  const response = fetch(`${base}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Readable.toWeb(Readable.from(parts())) as unknown as string,
    duplex: 'half',
  } as RequestInit)
  await waitUntil('the provider is called', () => early.begun === 1)
  held.resolve()
  t.equal(await (await response).text(), '{"text":"streamed"}')
  t.equal(early.body, head + tail)
})

t.test('400, 401, 402, 413, 415: what is wrong, before anybody is asked', async t => {
  const asked = calls()
  const speech = '/v1/audio/speech'
  t.match(await client.post(speech, { input: 'x' }, headers), {
    status: 400,
    body: { error: { message: /model/ } },
  })
  t.match(await client.post(speech, '{', headers), { status: 400 })
  t.match(await client.post(speech, { model: 3 }, headers), { status: 400 })
  t.match(await client.post(speech, { model: 'nobody-has-it' }, headers), { status: 400 })
  t.match(await client.post(speech, { model: 'tts-1' }, { ...headers, 'idempotency-key': 'a' }), {
    status: 400,
    body: { error: { message: /Idempotency-Key/ } },
  })
  t.match(await client.post(speech, { model: 'tts-1' }, { 'x-memory-key': key }), {
    status: 401,
    body: { error: { message: /^No provider key for openai\. Send one/ } },
  })
  t.equal((await client.post(speech, { model: 'tts-1' })).status, 401)
  const transcriptions = '/v1/audio/transcriptions'
  t.match(await client.post(transcriptions, { model: 'whisper-1' }, headers), { status: 415 })
  t.equal((await sent(new FormData())).status, 400)
  const bare = [
    `POST ${transcriptions} HTTP/1.1`,
    'Host: vault',
    `X-Memory-Key: ${key}`,
    'X-Provider-Key: sk-test',
    'Content-Type: multipart/form-data; boundary=x',
    'Connection: close\r\n\r\n',
  ].join('\r\n')
  const { answers } = await sendRaw(Number(new URL(base).port), [bare])
  t.match(answers, [{ status: 400, body: /The request has no body/ }])
  t.equal((await sent(formOf('whisper-1', 'file', 27 * 1024 * 1024))).status, 413)
  t.equal((await sent(formOf('whisper-1', 'file'), { authorization: 'none' })).status, 401)

  const { account } = await resolveCaller(backend, key)
  await setBalance(backend, { account }, 0)
  t.equal((await client.post(speech, { model: 'tts-1' }, headers)).status, 402)
  await setBalance(backend, { account }, null)
  t.equal(calls(), asked)
})

t.test('422: an error of the provider as it says it', async t => {
  provider.respondNext(respondError('openai', 422))
  const { status, text } = await sent(formOf('whisper-1', 'model'))
  t.equal(status, 422)
  t.equal(text, last().response.body.toString())
})

t.test('requests are counted by model and cost no memory tokens', async t => {
  await backend.usage.flush()
  const { body } = await client.get('/v1/account/usage', { 'x-memory-key': key })
  t.ok(body.by_model['openai/tts-1'].requests >= 3)
  t.ok(body.by_model['groq/whisper-large'].requests === 2)
  t.equal(body.total_memory_tokens, 0)
})
