import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import { respondJson, respondWith } from '#test/support/doubles/model-provider/answers.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import {
  asks,
  completionsPath as path,
  startCompletions,
} from '#test/support/samples/completions.ts'
import { billedEvents, countRows } from '#test/support/checks/observe.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

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

t.test('200: a client that has seen the end of a stream knows that it is stored', async t => {
  const { headers } = await user()
  provider.respondNext(respondWith(chatCompletionEvents(['Good ', 'morning.'])))
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(asks('Hello!', { stream: true })),
  })
  t.match(await response.text(), /morning/)
  t.equal(await countRows(backend, 'open_exchanges'), 0)
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

t.test('200: ways to bring both keys', async t => {
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
  await waitUntil('opened', async () => (await countRows(backend, 'open_exchanges')) === 1)
  await startJobWorkers(backend, 'clear')
  const cleared = await anonymous.send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': headers['x-memory-key'] },
  })
  t.equal(cleared.status, 200)
  t.equal(await countRows(backend, 'open_exchanges'), 0, 'the words are gone')
  release()
  t.equal((await answering).status, 200)
  t.same(await stored(), [])
  provider.respondNext(respondJson(chatCompletion('Hello.')))
  await post(asks('A new start.'))
  t.equal((await stored()).length, 2)
  t.equal((await readDocuments(backend, key)).length, 2)
})
