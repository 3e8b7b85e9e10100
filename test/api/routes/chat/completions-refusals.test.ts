import t from 'tap'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, defaultRecallTimeout } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import {
  disconnectAfter,
  redirectTo,
  respondJson,
} from '#test/support/doubles/model-provider/answers.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import {
  asks,
  completionsPath as path,
  startCompletions,
} from '#test/support/samples/completions.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'

const { provider, backend, base, anonymous, user, calls, last } = await startCompletions(t)

t.test('401: no Memory Key, two of them, one in the wrong place, or no provider key', async t => {
  const { key, headers } = await user()
  const other = await buildKey(backend)
  const asked = provider.requests.length
  const refused = async (sent: Record<string, string>, model = 'openai/gpt-5') => {
    const { status, body } = await anonymous.post(path, asks('hi', { model }), sent)
    t.equal(status, 401, JSON.stringify(body))
    return body
  }
  t.match(await refused({ authorization: 'Bearer sk-1' }), {
    error: { message: /^No Memory Key in the request/, code: 'invalid_api_key' },
  })
  t.match(await refused({ ...headers, 'x-api-key': other }), {
    error: { message: /Two different/ },
  })
  t.match(await refused({ ...headers, 'x-goog-api-key': other }), {
    error: { message: /Two different/ },
  })
  t.match(await refused({ authorization: `Bearer ${key}`, 'x-provider-key': other }), {
    error: { message: /X-Provider-Key holds a Memory Key/ },
  })
  t.match(await refused({ authorization: `Bearer ${key}`, 'x-provider-key': 'schlüssel' }), {
    error: { message: /not one/ },
  })
  const own = { authorization: `Bearer ${key}` }
  t.match(await refused(own), {
    error: { message: /^No provider key for openai/ },
    hint: /X-Provider-Key.*openai/,
  })
  t.match(await refused(own, 'anthropic/claude-x'), { error: { message: /anthropic/ } })
  t.match(
    await refused(own, 'groq/llama'),
    { error: { message: /^No provider key for groq/ } },
    'the operator’s key is used for no account',
  )
  t.equal(provider.requests.length, asked)
})

t.test('402: a used-up balance, before anybody is asked', async t => {
  const { key, post, stored } = await user()
  const { account } = await resolveCaller(backend, key)
  await setBalance(backend, { account }, 0)
  const asked = provider.requests.length
  const { status, headers } = await post(asks('hi'))
  t.equal(status, 402)
  t.equal(headers.get('x-memory-cache-safe'), null)
  t.equal(headers.get('x-provider-response-ms'), '0')
  t.equal(provider.requests.length, asked)
  t.same(await stored(), [])
})

t.test('400: what is wrong with a request, before anything is asked or stored', async t => {
  const { post, stored } = await user()
  const asked = calls()
  const cases: [unknown, Record<string, string>, string, RegExp][] = [
    ['{"model":', {}, '', /JSON/],
    ['[]', {}, '', /object/],
    [undefined, {}, '', /model/],
    [{ messages: [] }, {}, '', /model/],
    [{ model: 'openai/gpt-5' }, {}, '', /messages/],
    [asks('hi', { temperature: 2.1 }), {}, '', /temperature/],
    [asks('hi', { model: 'nobody-has-it' }), {}, '', /No provider is known/],
    [asks('hi'), {}, '?mode=on&mode=off', /mode/],
    [asks('hi'), { 'x-embedding-model': 'nobody/none' }, '', /embedding/],
    [asks('hi', { session_id: 'x'.repeat(257) }), {}, '', /session_id/],
    [asks('hi', { session_id: 5 }), {}, '', /session_id must be a session id or null, not 5/],
    [asks('hi', { memory: 'loud' }), {}, '', /memory/],
  ]
  for (const [body, headers, search, error] of cases) {
    const answer = await post(body, headers, search)
    t.equal(answer.status, 400, `${error}: ${JSON.stringify(answer.body)}`)
    t.match(answer.body.error.message, error)
    t.ok(answer.headers.has('x-total-ms'))
    t.notOk(answer.headers.has('x-memory-status'), 'which is of calls that memory had a part in')
  }
  t.equal((await post('x', { 'content-type': 'multipart/form-data' })).status, 415)
  t.equal((await post(`"${'x'.repeat(20 * 1024 * 1024)}"`)).status, 413)
  t.equal(calls(), asked)
  t.same(await stored(), [])
})

t.test('502: a provider that is away, or leads elsewhere; the user is remembered', async t => {
  const { post, stored } = await user()
  provider.respondNext(redirectTo('https://elsewhere.example/'))
  const led = await post(asks('first'))
  t.equal(led.status, 502)
  t.match(led.body, { error: { message: /redirect/ }, hint: /base URL/ })
  await provider.goDown()
  const away = await post(asks('second'))
  t.equal(away.status, 502)
  t.match(away.body, { error: { message: /^openai is out of reach/ } })
  t.ok(away.headers.has('x-memory-reflection-debt'))
  await provider.comeUp()
  t.same(await stored(), [
    ['user', 'first'],
    ['user', 'second'],
  ])
})

t.test('200: recalling that fails or is slow fails no call', async t => {
  // Nobody takes its jobs: the embedding model would keep a worker waiting.
  const idle = await createTestBackend(t, { env: { ...provider.env, ...defaultRecallTimeout } })
  const key = await buildKey(idle)
  const { post } = await startTestApi(t, idle)
  provider.respondAlways((seen, answer) => {
    if (!seen.url.endsWith('/embeddings')) return respondJson(chatCompletion('Fine.'))(seen, answer)
  })
  const begun = performance.now()
  const { status, headers } = await post(path, asks('hi'), {
    'x-memory-key': key,
    'x-provider-key': providerKey('openai'),
    'x-embedding-model': 'openai/slow-model',
  })
  const ms = performance.now() - begun
  t.equal(status, 200)
  t.equal(headers.get('x-memory-status'), 'degraded')
  t.equal(headers.get('x-memory-tokens-injected'), '0')
  t.ok(ms > 1_400, `${ms} ms`)
  const jobs = await jobsOf(idle, 'ingest')
  t.match(
    jobs.map(({ data }) => data),
    [{ model: 'openai/slow-model', memories: [{ text: 'hi' }, { text: 'Fine.' }] }],
  )
  provider.respondAlways()
})

t.test('400: a refusal of a call with a block that breaks off breaks off here', async t => {
  const { key, headers } = await user()
  await insertMemories(backend, key, [
    { text: 'The bicycle of my sister is number 7 in the blue book.' },
  ])
  const json = { 'content-type': 'application/json' }
  provider.respondNext(disconnectAfter(['{"error":{'], { status: 400, headers: json }))
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, ...json },
    body: JSON.stringify(asks('Which number has the bicycle of my sister?')),
  })
  t.match(last().body.toString(), '<memory_context>')
  t.equal(response.status, 400)
  await t.rejects(response.text())
})
