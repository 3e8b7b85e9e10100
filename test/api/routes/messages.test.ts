import t from 'tap'
import { buildKey, clientOf, testApi, workOn } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'
import { answersJson, refuses } from '#test/support/model-provider/answers.ts'
import { modelProvider, providerKey } from '#test/support/model-provider.ts'
import { headerOf } from '#test/support/recorder.ts'
import { until } from '#test/support/until.ts'
import { documentsOf, remember } from '#test/support/vault.ts'

const provider = await modelProvider(t)
const backend = await testBackend(t, { env: provider.env })
const { base } = await testApi(t, backend)
const key = await buildKey(backend)
const client = clientOf(base)
await workOn(backend, 'ingest')
await remember(backend, key, [{ text: 'The boat is called Nausicaa.' }])

const path = '/v1/messages'
const sk = providerKey('anthropic')
const last = () => provider.seen.at(-1)!
const asks = (content: unknown, more: object = {}) => ({
  model: 'claude-sonnet-5',
  max_tokens: 100,
  messages: [{ role: 'user', content }],
  ...more,
})
const says = (text: string) =>
  answersJson({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 12, output_tokens: 3 },
  })

t.test('200: the format of Anthropic, with its headers, and memory around it', async t => {
  provider.next(says('Nausicaa.'))
  const answer = await client.post(
    `${path}?beta=true&mode=on`,
    asks('What is the boat called?', { system: 'Be brief.' }),
    {
      'x-api-key': key,
      'x-provider-key': sk,
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a,b',
      cookie: 'a=b',
    },
  )
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('x-memory-status'), 'ok')
  t.equal(last().url, '/anthropic/v1/messages?beta=true')
  const { headers } = last()
  t.equal(headerOf(headers, 'x-api-key'), sk)
  t.equal(headerOf(headers, 'authorization'), undefined)
  t.equal(headerOf(headers, 'cookie'), undefined)
  t.equal(headerOf(headers, 'anthropic-version'), '2023-06-01')
  t.equal(headerOf(headers, 'anthropic-beta'), 'a,b')
  const body = JSON.parse(last().body.toString())
  t.equal(body.system, 'Be brief.')
  t.match(body.messages, [
    { role: 'user', content: [{ text: /Nausicaa/ }, { text: 'What is the boat called?' }] },
  ])
  await until('stored', async () => (await documentsOf(backend, key)).length === 3)
  t.match((await documentsOf(backend, key)).slice(1), [
    { role: 'user', text: 'What is the boat called?' },
    { role: 'assistant', text: 'Nausicaa.' },
  ])
})

t.test('200: keys as the SDKs send them; tokens of subscriptions stay bearers’', async t => {
  const off = { 'x-memory-mode': 'off', 'anthropic-version': '2023-06-01' }
  const sent = async (headers: Record<string, string>) => {
    provider.next(says('ok'))
    t.equal((await client.post(path, asks('hi'), { ...headers, ...off })).status, 200)
    return [headerOf(last().headers, 'x-api-key'), headerOf(last().headers, 'authorization')]
  }
  t.same(await sent({ 'x-memory-key': key, 'x-api-key': sk }), [sk, undefined])
  t.same(await sent({ 'x-memory-key': key, authorization: `Bearer ${sk}` }), [sk, undefined])
  t.same(await sent({ 'x-api-key': key, authorization: `Bearer ${sk}` }), [sk, undefined])
  const token = 'sk-ant-oat01-abcdef'
  t.same(await sent({ 'x-memory-key': key, authorization: `Bearer ${token}` }), [
    undefined,
    `Bearer ${token}`,
  ])
})

t.test('200: Claude in OpenAI’s format, at the place where Anthropic speaks that', async t => {
  provider.next(answersJson({ id: 'x', choices: [] }))
  const body = { model: 'claude-sonnet-5', messages: [{ role: 'user', content: 'hi' }] }
  const headers = { 'x-memory-key': `${key}:off`, authorization: `Bearer ${sk}` }
  t.equal((await client.post('/v1/chat/completions', body, headers)).status, 200)
  t.equal(last().url, '/anthropic/v1/chat/completions')
  t.equal(headerOf(last().headers, 'authorization'), `Bearer ${sk}`)
})

t.test('400: a model of somebody who does not speak this format', async t => {
  const { status, body } = await client.post(path, asks('hi', { model: 'openai/gpt-5' }), {
    'x-memory-key': key,
    authorization: `Bearer ${sk}`,
  })
  t.equal(status, 400)
  t.match(body, { error: /openai does not speak/, hint: /\/v1\/chat\/completions/ })
  t.equal(
    (await client.post(path, asks('hi', { max_tokens: 'x' }), { 'x-api-key': key })).status,
    400,
  )
  t.equal(
    (await client.post(path, asks('hi', { temperature: 1.5 }), { 'x-api-key': key })).status,
    400,
  )
})

t.test('529: overloaded, as Anthropic says it', async t => {
  provider.next(refuses('anthropic', 529))
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'x-memory-key': key, 'x-api-key': sk, 'content-type': 'application/json' },
    body: JSON.stringify(asks('hi', { memory: false })),
  })
  t.equal(response.status, 529)
  t.equal(await response.text(), last().sent.body.toString())
  t.equal(response.headers.get('request-id'), 'req_anthropic_1')
  t.equal(response.headers.get('x-memory-status'), 'off')
})
