import t from 'tap'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { buildKey, startJobWorkers } from '#test/support/api.ts'
import { waitUntilSettled } from '#test/support/exchange-journal.ts'
import {
  respondJson,
  disconnectAfter,
  respondWith,
  splitBytes,
  redirectTo,
  neverRespond,
} from '#test/support/model-provider/answers.ts'
import { modelNames } from '#test/support/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readDocuments } from '#test/support/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)
const say = async (key: string, content: string, extra = {}) => {
  const begun = performance.now()
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...extra },
    body: JSON.stringify({ model: modelNames.openai, messages: [{ role: 'user', content }] }),
  })
  const text = await response.text()
  const { status, headers } = response
  return { status, headers, text, ms: performance.now() - begun }
}

/** What is stored of a call, which goes on for a moment after the client has heard the last of it. */
const storedOf = async (key: string, count: number) => {
  await waitUntil('it is stored', async () => (await readDocuments(backend, key)).length >= count)
  await waitUntilSettled(backend)
  return (await readDocuments(backend, key)).map(({ text }) => text).toSorted()
}

t.test('502: it is down, and says nothing', async t => {
  const key = await world.newKey()
  await provider.goDown()
  const { status, text, headers } = await say(key, 'Anybody there?')
  await provider.comeUp()
  t.equal(status, 502)
  t.match(JSON.parse(text), { error: { message: /openai/i }, hint: String })
  t.ok(headers.has('x-total-ms'))
  t.same(await storedOf(key, 1), ['Anybody there?'], 'what the user said is kept')
  t.equal((await say(key, 'And now?')).status, 200)
})

t.test('502: it redirects, and is not followed', async t => {
  const key = await world.newKey()
  for (const status of [301, 302, 303, 307, 308]) {
    provider.respondNext(redirectTo(`${provider.directOrigin}/elsewhere`, status))
    const before = provider.requests.length
    const answer = await say(key, 'Where to?')
    t.equal(answer.status, 502, String(status))
    t.match(JSON.parse(answer.text), { error: { message: /redirect/i }, hint: String })
    t.equal(provider.requests.length, before + 1, 'nobody else is asked')
  }
})

t.test('502: it breaks the connection before it says anything', async t => {
  const key = await world.newKey()
  provider.respondNext((_seen, answer) => answer.cut())
  t.equal((await say(key, 'Once more?')).status, 502)
  t.same(await storedOf(key, 1), ['Once more?'])
})

const compressions = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
}

for (const [name, compress] of Object.entries(compressions)) {
  t.test(`200: it compresses all the same (${name}): passed on, and read`, async t => {
    const message = { role: 'assistant', content: 'Pressed.' }
    const whole = JSON.stringify({ choices: [{ index: 0, message }] })
    const stream =
      'data: {"choices":[{"index":0,"delta":{"content":"Pressed."}}]}\n\ndata: [DONE]\n\n'
    for (const [type, text] of [
      ['application/json', whole],
      ['text/event-stream', stream],
    ] as const) {
      const key = await world.newKey()
      const headers = { 'content-type': type, 'content-encoding': name }
      provider.respondNext(respondWith(splitBytes(compress(text), 7), { headers }))
      const answer = await say(key, 'Small, please.')
      t.equal(answer.status, 200)
      t.equal(answer.text, text)
      t.same(await storedOf(key, 2), ['Pressed.', 'Small, please.'])
    }
  })
}

t.test('200: a compressed answer that breaks off, or in an unknown encoding', async t => {
  const piece = 'data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n'
  const [cut, odd] = [await world.newKey(), await world.newKey()]
  const headers = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }
  provider.respondNext(respondWith([gzipSync(piece).subarray(0, -6)], { headers }))
  t.equal((await say(cut, 'Small, please.')).status, 200)
  t.same(await storedOf(cut, 2), ['Half', 'Small, please.'])
  provider.respondNext(respondWith([piece], { headers: { ...headers, 'content-encoding': 'odd' } }))
  t.equal((await say(odd, 'Small, please.')).status, 200)
  t.same(await storedOf(odd, 1), ['Small, please.'])
})

t.test('an answer that is none is passed on, and not stored', async t => {
  const key = await world.newKey()
  const page = '<html>502 Bad Gateway</html>'
  provider.respondNext(async (_seen, answer) => {
    answer.head(200, { 'content-type': 'text/html' })
    await answer.write(page)
    answer.end()
  })
  const { status, text, headers } = await say(key, 'Read me a page.')
  t.equal(status, 200)
  t.equal(text, page)
  t.equal(headers.get('content-type'), 'text/html')
  t.same(await storedOf(key, 1), ['Read me a page.'])
})

t.test('an error stays what it was, and only the question is stored', async t => {
  const key = await world.newKey()
  provider.respondNext(respondJson({ error: { message: 'overloaded' } }, { status: 529 }))
  const { status, text } = await say(key, 'Busy?')
  t.equal(status, 529)
  t.same(JSON.parse(text), { error: { message: 'overloaded' } })
  t.same(await storedOf(key, 1), ['Busy?'])
})

t.test('it goes away in the middle: the client sees it break, the words are kept', async t => {
  const key = await world.newKey()
  const piece = 'data: {"choices":[{"index":0,"delta":{"content":"Half a"}}]}\n\n'
  provider.respondNext(disconnectAfter([piece]))
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: modelNames.openai,
      stream: true,
      messages: [{ role: 'user', content: 'Tell me all.' }],
    }),
  })
  const reader = response.body!.getReader()
  t.equal(Buffer.from((await reader.read()).value ?? '').toString(), piece)
  await t.rejects(reader.read(), 'no clean end is pretended')
  t.same(await storedOf(key, 2), ['Half a', 'Tell me all.'])
})

t.test('it is silent, and the client gives up', async t => {
  const key = await world.newKey()
  provider.respondNext(neverRespond)
  const asked = provider.requests.length
  const hangUp = new AbortController()
  const call = fetch(`${base}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({
      model: modelNames.anthropic,
      max_tokens: 5,
      messages: [{ role: 'user', content: 'Hello?' }],
    }),
    signal: hangUp.signal,
  }).catch(() => {})
  await waitUntil('it is asked', () => provider.requests.length > asked)
  hangUp.abort()
  await call
  t.equal(await provider.requests.at(-1)!.outcome, 'left')
  t.same(await storedOf(key, 1), ['Hello?'])
})

t.test('401: its answer to a wrong key is not ours', async t => {
  const refusal = { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }
  provider.respondNext(respondJson(refusal, { status: 401, headers: { 'x-request-id': 'req_9' } }))
  const { status, text, headers } = await say(await buildKey(backend), 'Hi', {
    'x-provider-key': 'sk-wrong',
  })
  t.equal(status, 401)
  t.same(JSON.parse(text), refusal)
  t.equal(headers.get('x-request-id'), 'req_9')
})
