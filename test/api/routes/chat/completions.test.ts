import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/chat-stream.ts'
import {
  respondJson,
  disconnectAfter,
  respondWith,
  redirectTo,
  respondError,
  stallAfter,
} from '#test/support/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/model-provider.ts'
import { findHeader, type RecordedRequest } from '#test/support/recording-server.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { resolveCaller, readDocuments, insertMemories } from '#test/support/insert-memories.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, {
  env: { ...provider.env, GROQ_API_KEY: 'of the operator' },
})
const { base } = await startTestApi(t, backend)
const anonymous = createTestClient(base)
await startJobWorkers(backend, 'ingest')

const path = '/v1/chat/completions'
const asks = (content: string, more: object = {}) => ({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content }],
  ...more,
})

/** A vault of its own, and headers that call OpenAI with it. */
async function user() {
  const key = await buildKey(backend)
  const headers = { 'x-memory-key': key, authorization: `Bearer ${providerKey('openai')}` }
  const post = (body: unknown, more: Record<string, string> = {}, query = '') =>
    anonymous.post(path + query, body, { ...headers, ...more })
  /** What is stored, as soon as nothing is on its way any more. */
  const stored = async (): Promise<[string, string][]> => {
    await settled()
    return (await readDocuments(backend, key)).map(({ role, text }) => [role, text])
  }
  return { key, headers, post, stored }
}

/** As it comes: what a provider says is not for our contract to judge. */
async function plain(headers: Record<string, string>, body: unknown) {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const { query } = backend.postgres
const settled = () =>
  waitUntil('nothing is on its way', async () => {
    const { rows } = await query<{ n: number }>(
      `select (select count(*) from open_exchanges)::int
            + (select count(*) from operations where state in ('accepted', 'running'))::int as n`,
    )
    return rows[0]!.n === 0
  })

const usageOf = async ({ postgres }: Backend, key: string) => {
  const { scope } = await resolveCaller(backend, key)
  const { rows } = await postgres.query(
    `select kind, model, session, input_tokens, output_tokens, memory_tokens from usage_events
     where vault = $1 order by at`,
    [scope.vault],
  )
  return rows
}

/** How often a model was called; its provider may have been asked for its list. */
const calls = () => provider.requests.filter(({ method }) => method === 'POST').length
const last = (): RecordedRequest => provider.requests.at(-1)!
const sent = () => JSON.parse(last().body.toString()) as { messages: { content: string }[] }

t.test('200: an answer with what is remembered, and the exchange is remembered', async t => {
  const { key, post, stored } = await user()
  await insertMemories(backend, key, [
    { text: 'My cat is called Ada.', at: Date.now() - 3_600_000 },
  ])
  const text = chatCompletion('Her name is Ada.').replace('{"id"', '{ "id"')
  provider.respondNext(respondJson(text, { headers: { 'x-ratelimit-remaining-tokens': '9' } }))
  const { status, headers, body } = await post(asks('What is my cat called?'))

  t.equal(status, 200)
  t.same(body, JSON.parse(text))
  t.equal(last().url, '/openai/v1/chat/completions')
  t.equal(findHeader(last().headers, 'authorization'), `Bearer ${providerKey('openai')}`)
  t.match(sent().messages, [{ content: /Ada/ }, { content: 'What is my cat called?' }])
  t.match(Object.fromEntries(headers), {
    'content-type': 'application/json',
    'x-ratelimit-remaining-tokens': '9',
    'x-memory-status': 'ok',
    'x-memory-tokens-retrieved': '6',
    'x-memory-tokens-injected': /^[1-9]\d+$/,
    'x-memory-cache-safe': 'true',
    'x-svc-processing-ms': /^\d+(\.\d)?$/,
    'x-provider-response-ms': /^\d+(\.\d)?$/,
    'x-total-ms': /^\d+(\.\d)?$/,
  })
  t.notOk(headers.has('set-cookie'))
  t.match(JSON.parse(headers.get('x-memory-reflection-debt')!), {
    raw_units: 1,
    raw_tokens: 6,
    threshold: 50_000,
    suggestion: null,
  })
  t.same(await stored(), [
    ['user', 'My cat is called Ada.'],
    ['user', 'What is my cat called?'],
    ['assistant', 'Her name is Ada.'],
  ])
  t.same(await usageOf(backend, key), [
    {
      kind: 'proxy',
      model: 'openai/gpt-5',
      session: null,
      input_tokens: 31,
      output_tokens: 7,
      memory_tokens: 6 + 11,
    },
  ])
})

t.test('200: a stream comes as it is sent, byte for byte, and is remembered', async t => {
  const { headers, stored } = await user()
  const chunks = chatCompletionEvents(['Good ', 'mor', 'ning.'])
  let release = (): void => {}
  const held = new Promise<void>(resolve => (release = resolve))
  provider.respondNext(async (_, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    await answer.write(chunks[0]!)
    await held
    for (const chunk of chunks.slice(1)) await answer.write(chunk)
    answer.end()
  })
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(asks('Hello!', { stream: true })),
  })
  t.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reader = response.body!.getReader()
  const first = await reader.read()
  t.equal(
    new TextDecoder().decode(first.value),
    chunks[0],
    'the first piece, before there is another',
  )
  release()
  let text = chunks[0]!
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    text += Buffer.from(piece.value).toString()
  }
  t.equal(text, chunks.join(''))
  const { rows } = await query('select from open_exchanges')
  t.equal(rows.length, 0, 'whoever has seen the end knows that it is stored')
  t.same(await stored(), [
    ['user', 'Hello!'],
    ['assistant', 'Good morning.'],
  ])
})

t.test('200: every switch, in every place, and none of them leaves', async t => {
  const said = 'I live in Lisbon.'
  type Case = {
    what: string
    headers?: Record<string, string>
    suffix?: string
    query?: string
    body?: object
    status?: string
    stored: string[]
  }
  const [user1, reply] = [said, 'Noted.']
  const cases: Case[] = [
    { what: 'nothing', status: 'ok', stored: [user1, reply] },
    { what: 'mode header', headers: { 'x-memory-mode': 'off' }, status: 'off', stored: [] },
    { what: 'mode header', headers: { 'x-memory-mode': 'read' }, status: 'ok', stored: [] },
    {
      what: 'mode header',
      headers: { 'x-memory-mode': 'write' },
      status: 'off',
      stored: [user1, reply],
    },
    { what: 'store header', headers: { 'x-memory-store': 'false' }, status: 'ok', stored: [reply] },
    { what: 'reply header', headers: { 'x-memory-store-response': 'false' }, stored: [user1] },
    { what: 'suffix', suffix: ':read', status: 'ok', stored: [] },
    { what: 'suffix and header', suffix: ':read', headers: { 'x-memory-mode': 'on' }, stored: [] },
    { what: 'suffix', suffix: ':off', status: 'off', stored: [] },
    { what: 'query', query: '?memory=off', status: 'off', stored: [] },
    { what: 'query', query: '?mode=read', status: 'ok', stored: [] },
    { what: 'query', query: '?store=false', stored: [reply] },
    { what: 'body', body: { memory: false }, status: 'off', stored: [] },
    { what: 'body', body: { memory_mode: 'write' }, status: 'off', stored: [user1, reply] },
    { what: 'body', body: { memory_store: false, memory_store_response: false }, stored: [] },
    { what: 'body', body: { memory_store_response: false }, stored: [user1] },
    {
      what: 'body against header',
      headers: { 'x-memory-mode': 'read' },
      body: { memory_mode: 'write' },
      status: 'off',
      stored: [],
    },
  ]
  for (const { what, headers = {}, suffix = '', query = '', body = {}, status, stored } of cases) {
    const { key, post, stored: found } = await user()
    await insertMemories(backend, key, [{ text: 'Lisbon is sunny.' }])
    provider.respondNext(respondJson(chatCompletion(reply)))
    const answer = await post(asks(said, body), { 'x-memory-key': key + suffix, ...headers }, query)
    const name = `${what} ${JSON.stringify({ headers, suffix, query, body })}`
    t.equal(answer.status, 200, name)
    t.notMatch(last().url, /\?/, name)
    t.notOk(
      last().headers.some(([header]) => /^x-memory|^x-session/i.test(header)),
      name,
    )
    t.notMatch(Object.keys(sent()), /memory|session/, name)
    if (status) t.equal(answer.headers.get('x-memory-status'), status, name)
    t.same(
      (await found()).slice(1).map(([, text]) => text),
      stored,
      name,
    )
  }
})

t.test('200: a session is recalled together with the core, and echoed', async t => {
  const { key, post, stored } = await user()
  await insertMemories(backend, key, [{ text: 'The tent is green.' }])
  await insertMemories(backend, key, [{ text: 'The tent has a hole.' }], { session: 'trip ü' })
  provider.respondAlways(respondJson(chatCompletion('Yes.')))
  const header = { 'x-session-id': Buffer.from('trip ü').toString('latin1') }
  const first = await post(asks('What about the tent?'), header)
  t.equal(first.headers.get('x-session-id'), 'trip %C3%BC')
  t.match(sent().messages[0]!.content, /green[\s\S]*hole/)
  const second = await post(asks('And the tent?', { session_id: 'trip ü' }))
  t.equal(second.headers.get('x-session-id'), 'trip %C3%BC')
  t.notMatch(Object.keys(sent()), ['session_id'])
  await stored()
  const documents = await readDocuments(backend, key)
  t.equal(documents.filter(({ session }) => session === 'trip ü').length, 5)
  t.match(await post(asks('x', { session_id: 'a' }), { 'x-session-id': 'b' }), { status: 400 })
  provider.respondAlways()
})

t.test('200: what is not for memory is not stored', async t => {
  const { post, stored } = await user()
  provider.respondNext(respondJson(chatCompletion('Understood.')))
  const messages = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'An old question' },
    { role: 'assistant', content: 'An old answer' },
    { role: 'user', content: 'Not for memory', memory: false },
    { role: 'user', content: 'For memory' },
  ]
  await post({ model: 'openai/gpt-5', messages })
  t.notMatch(last().body.toString(), /"memory"/)
  t.same(await stored(), [
    ['user', 'For memory'],
    ['assistant', 'Understood.'],
  ])
})

t.test(
  '200: a call of a tool stores what the user said, and what follows it the answer',
  async t => {
    const { key, post, stored } = await user()
    const calls = {
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    }
    provider.respondNext(respondJson(chatCompletion(null, calls)))
    const ask = { role: 'user', content: 'Will it rain?' }
    await post({ model: 'openai/gpt-5', messages: [ask] })
    t.same(await stored(), [['user', 'Will it rain?']])
    provider.respondNext(respondJson(chatCompletion('It stays dry.')))
    const result = { role: 'tool', tool_call_id: 'c1', content: 'dry' }
    await post({
      model: 'openai/gpt-5',
      messages: [ask, { role: 'assistant', content: null, ...calls }, result],
    })
    t.same(await stored(), [
      ['user', 'Will it rain?'],
      ['assistant', 'It stays dry.'],
    ])
    t.equal((await usageOf(backend, key)).length, 2)
  },
)

t.test('200: ways to bring both keys, and the account’s own', async t => {
  const { key } = await user()
  provider.respondAlways(respondJson(chatCompletion('ok')))
  const sk = providerKey('openai')
  const ways: Record<string, string>[] = [
    { 'x-memory-key': key, authorization: `Bearer ${sk}` },
    { authorization: `Bearer ${key}`, 'x-provider-key': sk },
    { 'x-api-key': key, authorization: `Bearer ${sk}` },
    { 'x-memory-key': key, 'x-api-key': sk },
    { 'x-goog-api-key': key, 'x-provider-key': sk },
    { authorization: `Bearer ${key}`, 'x-api-key': key, 'x-provider-key': sk },
  ]
  const off = { 'x-memory-mode': 'off' }
  for (const headers of ways) {
    const answer = await anonymous.post(path, asks('hi'), { ...headers, ...off })
    t.equal(answer.status, 200, Object.keys(headers).join(' '))
    t.equal(findHeader(last().headers, 'authorization'), `Bearer ${sk}`)
  }
  const { account } = await resolveCaller(backend, key)
  await storeProviderKey({ query, seal: backend.seal }, { account, actor: 'test' }, 'mistral', 'sk-of-the-account')
  const body = asks('hi', { model: 'mistral/small' })
  t.equal(
    (await anonymous.post(path, body, { authorization: `Bearer ${key}`, ...off })).status,
    200,
  )
  t.equal(last().url, '/mistral/v1/chat/completions')
  t.equal(findHeader(last().headers, 'authorization'), 'Bearer sk-of-the-account')
  t.match(last().body.toString(), '"model":"small"')
  provider.respondAlways()
})

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
    error: 'No Memory Key in the request',
  })
  t.match(await refused({ ...headers, 'x-api-key': other }), { error: /Two different/ })
  t.match(await refused({ ...headers, 'x-goog-api-key': other }), { error: /Two different/ })
  t.match(await refused({ authorization: `Bearer ${key}`, 'x-provider-key': other }), {
    error: /X-Provider-Key holds a Memory Key/,
  })
  t.match(await refused({ authorization: `Bearer ${key}`, 'x-provider-key': 'schlüssel' }), {
    error: /not one/,
  })
  const own = { authorization: `Bearer ${key}` }
  t.match(await refused(own), {
    error: 'No provider key for openai',
    hint: /X-Provider-Key.*openai/,
  })
  t.match(await refused(own, 'anthropic/claude-x'), { error: /anthropic/ })
  t.match(
    await refused(own, 'groq/llama'),
    { error: 'No provider key for groq' },
    'the operator’s key pays for nobody',
  )
  t.equal(provider.requests.length, asked)
})

t.test('402: a used-up balance, before anybody is asked', async t => {
  const { key, post, stored } = await user()
  const { account } = await resolveCaller(backend, key)
  await query('update accounts set balance = 0 where id = $1', [account])
  const asked = provider.requests.length
  const { status, headers } = await post(asks('hi'))
  t.equal(status, 402)
  t.equal(headers.get('x-memory-cache-safe'), 'true')
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
    [asks('hi', { memory_mode: 'never' }), {}, '', /memory_mode/],
    [asks('hi', { model: 'nobody-has-it' }), {}, '', /No provider is known/],
    [asks('hi'), { 'x-memory-mode': 'perhaps' }, '', /X-Memory-Mode/],
    [asks('hi'), { 'x-memory-store': '1' }, '', /X-Memory-Store/],
    [asks('hi'), {}, '?memory=maybe', /memory/],
    [asks('hi'), {}, '?mode=on&mode=off', /mode/],
    [asks('hi'), { 'x-embedding-model': 'nobody/none' }, '', /embedding/],
    [asks('hi', { session_id: 'x'.repeat(257) }), {}, '', /session_id/],
  ]
  for (const [body, headers, search, error] of cases) {
    const answer = await post(body, headers, search)
    t.equal(answer.status, 400, `${error}: ${JSON.stringify(answer.body)}`)
    t.match(answer.body.error, error)
    t.ok(answer.headers.has('x-total-ms'))
  }
  t.equal((await post('x', { 'content-type': 'text/plain' })).status, 415)
  t.equal((await post(`"${'x'.repeat(20 * 1024 * 1024)}"`)).status, 413)
  t.equal(calls(), asked)
  t.same(await stored(), [])
})

t.test(
  '429: an error of the provider, byte for byte; the user is remembered, the error is not',
  async t => {
    const { headers, stored } = await user()
    provider.respondNext(
      respondError('openai', 429, { 'retry-after': '7', 'retry-after-ms': '7000' }),
    )
    const answered = await plain(headers, asks('I am allergic to nuts.'))
    t.equal(answered.status, 429)
    t.equal(answered.text, last().response.body.toString())
    t.match(JSON.parse(answered.text), { error: { type: 'invalid_request_error' } })
    t.equal(answered.headers.get('retry-after'), '7')
    t.equal(answered.headers.get('x-request-id'), 'req_openai_1')
    t.equal(answered.headers.get('x-memory-status'), 'none')
    t.same(await stored(), [['user', 'I am allergic to nuts.']])
  },
)

t.test('502: a provider that is away, or leads elsewhere; the user is remembered', async t => {
  const { post, stored } = await user()
  provider.respondNext(redirectTo('https://elsewhere.example/'))
  const led = await post(asks('first'))
  t.equal(led.status, 502)
  t.match(led.body, { error: /redirect/, hint: /base URL/ })
  await provider.goDown()
  const away = await post(asks('second'))
  t.equal(away.status, 502)
  t.match(away.body, { error: 'openai is out of reach' })
  t.ok(away.headers.has('x-memory-reflection-debt'))
  await provider.comeUp()
  t.same(await stored(), [
    ['user', 'first'],
    ['user', 'second'],
  ])
})

t.test('200: recalling that fails or is slow fails no call', async t => {
  // Nobody takes its jobs: the embedding model would keep a worker waiting.
  const idle = await createTestBackend(t, { env: provider.env })
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
  t.ok(ms > 1_400 && ms < 3_000, `${ms} ms`)
  const { rows } = await idle.postgres.query(
    `select data->>'model' as model, data->'memories' as memories from pgboss.job
     where name = 'ingest'`,
  )
  t.match(rows, [{ model: 'openai/slow-model', memories: [{ text: 'hi' }, { text: 'Fine.' }] }])
  provider.respondAlways()
})

t.test(
  'a client that hangs up: the provider is left within a second, what was heard is stored',
  async t => {
    const { key, headers, stored } = await user()
    provider.respondNext(stallAfter(chatCompletionEvents(['Once upon ', 'a time'], { end: false })))
    const hangUp = new AbortController()
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(asks('Tell me a story.', { stream: true })),
      signal: hangUp.signal,
    })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text.includes('a time')) break
    }
    const leftAt = performance.now()
    hangUp.abort()
    t.equal(await last().outcome, 'left')
    t.ok(last().disconnectedAt! - leftAt < 1_000, `${last().disconnectedAt! - leftAt} ms`)
    t.same(await stored(), [
      ['user', 'Tell me a story.'],
      ['assistant', 'Once upon a time'],
    ])
    const documents = await readDocuments(backend, key)
    t.same(
      documents.map(({ interrupted }) => interrupted),
      [undefined, true],
    )
  },
)

t.test('a client that hangs up before the answer begins', async t => {
  const { headers, stored } = await user()
  const asked = provider.requests.length
  provider.respondNext(() => {})
  const hangUp = new AbortController()
  const response = fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(asks('Are you there?')),
    signal: hangUp.signal,
  })
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  hangUp.abort()
  await t.rejects(response)
  t.equal(await last().outcome, 'left')
  t.same(await stored(), [['user', 'Are you there?']])
})

t.test(
  'an answer that breaks off at the provider breaks off here, and is stored as far as it came',
  async t => {
    const { key, post, stored } = await user()
    provider.respondNext(disconnectAfter(chatCompletionEvents(['Half an '], { end: false })))
    await t.rejects(post(asks('Go on', { stream: true })))
    t.same(await stored(), [
      ['user', 'Go on'],
      ['assistant', 'Half an '],
    ])
    t.ok((await readDocuments(backend, key))[1]!.interrupted)
  },
)

t.test('200: nothing that is cleared while the model answers comes back', async t => {
  const { key, headers, post, stored } = await user()
  let release = (): void => {}
  const held = new Promise<void>(resolve => (release = resolve))
  provider.respondNext(async (seen, answer) => {
    await held
    await respondJson(chatCompletion('Secret kept.'))(seen, answer)
  })
  const asked = provider.requests.length
  const answering = post(asks('My secret is 42.'))
  await waitUntil('the provider is asked', () => provider.requests.length > asked)
  t.equal((await query('select from open_exchanges')).rows.length, 1)
  await startJobWorkers(backend, 'clear')
  const cleared = await anonymous.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'] },
  })
  t.equal(cleared.status, 200)
  t.equal((await query('select from open_exchanges')).rows.length, 0, 'the words are gone')
  release()
  t.equal((await answering).status, 200)
  t.same(await stored(), [])
  provider.respondNext(respondJson(chatCompletion('Hello.')))
  await post(asks('A new start.'))
  t.equal((await stored()).length, 2)
  t.equal((await readDocuments(backend, key)).length, 2)
})

t.test('exactly: the bytes a client sends, where there is nothing to change', async t => {
  const { headers } = await user()
  provider.respondNext(
    respondWith(['{"id":1,"choices":[]}'], { headers: { 'content-type': 'application/json' } }),
  )
  const body =
    '{ "messages" : [ {"content":"a\\u00e9", "role":"user"} ],\n "model":"gpt-5", "n":1.0, "unknown":{} }'
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'x-memory-mode': 'off' },
    body,
  })
  t.equal(await response.text(), '{"id":1,"choices":[]}')
  t.equal(last().body.toString(), body)
})
