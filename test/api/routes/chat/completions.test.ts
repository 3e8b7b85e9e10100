import t from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/chat-stream.ts'
import { respondJson, respondWith } from '#test/support/model-provider/answers.ts'
import { providerKey } from '#test/support/model-provider.ts'
import { findHeader } from '#test/support/recording-server.ts'
import { resolveCaller, readDocuments, insertMemories } from '#test/support/insert-memories.ts'
import { asks, completionsPath as path, startCompletions } from '#test/support/completions.ts'
import { billedEvents, countRows } from '#test/support/observe.ts'

const { provider, backend, base, anonymous, user, last } = await startCompletions(t)

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
  const [billed, ...others] = await billedEvents(backend, key)
  const { id, ...bill } = billed!
  t.type(id, 'string')
  t.same(bill, {
    kind: 'proxy',
    model: 'openai/gpt-5',
    session: null,
    inputTokens: 31,
    outputTokens: 7,
    memoryTokens: 6 + 11,
  })
  t.same(others, [])
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
  t.equal(
    await countRows(backend, 'open_exchanges'),
    0,
    'a client that has seen the end knows that it is stored',
  )
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

t.test('200: a parameter that is the provider’s may be given more than once', async t => {
  const { post } = await user()
  provider.respondNext(respondJson(chatCompletion('yes')))
  const { status } = await post(asks('hi'), {}, '?tag=a&mode=off&tag=b&__proto__=1&__proto__=2')
  t.equal(status, 200)
  t.equal(last().url, '/openai/v1/chat/completions?tag=a&tag=b&__proto__=1&__proto__=2')
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
    t.equal((await billedEvents(backend, key)).length, 2)
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
  await storeProviderKey(
    { query: backend.postgres.query, seal: backend.seal },
    { account, actor: 'test' },
    'mistral',
    'sk-of-the-account',
  )
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
