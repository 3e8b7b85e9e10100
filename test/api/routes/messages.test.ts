import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startModelProvider(t)
const { backend, base } = await startService(t, { env: provider.env, jobs: ['ingest'] })
const key = await buildKey(backend)
const client = createTestClient(base)
await insertMemories(backend, key, [{ text: 'The boat is called Nausicaa.' }])

const path = '/v1/messages'
const sk = providerKey('anthropic')
const last = () => provider.requests.at(-1)!
const asks = (content: unknown, more: object = {}) => ({
  model: 'claude-sonnet-5',
  max_tokens: 100,
  messages: [{ role: 'user', content }],
  ...more,
})
const says = (text: string) =>
  respondJson({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 12, output_tokens: 3 },
  })

t.test('200: the format of Anthropic, with its headers, and memory around it', async t => {
  provider.respondNext(says('Nausicaa.'))
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
  t.equal(findHeader(headers, 'x-api-key'), sk)
  t.equal(findHeader(headers, 'authorization'), undefined)
  t.equal(findHeader(headers, 'cookie'), undefined)
  t.equal(findHeader(headers, 'anthropic-version'), '2023-06-01')
  t.equal(findHeader(headers, 'anthropic-beta'), 'a,b')
  const body = JSON.parse(last().body.toString())
  t.equal(body.system, 'Be brief.')
  t.match(body.messages, [
    { role: 'user', content: [{ text: /Nausicaa/ }, { text: 'What is the boat called?' }] },
  ])
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 3)
  t.match((await readDocuments(backend, key)).slice(1), [
    { role: 'user', text: 'What is the boat called?' },
    { role: 'assistant', text: 'Nausicaa.' },
  ])
})

t.test('200: keys as the SDKs send them; tokens of subscriptions stay bearers’', async t => {
  const off = { 'x-memory-mode': 'off', 'anthropic-version': '2023-06-01' }
  const sent = async (headers: Record<string, string>) => {
    provider.respondNext(says('ok'))
    t.equal((await client.post(path, asks('hi'), { ...headers, ...off })).status, 200)
    return [findHeader(last().headers, 'x-api-key'), findHeader(last().headers, 'authorization')]
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
  provider.respondNext(respondJson({ id: 'x', choices: [] }))
  const body = { model: 'claude-sonnet-5', messages: [{ role: 'user', content: 'hi' }] }
  const headers = { 'x-memory-key': `${key}:off`, authorization: `Bearer ${sk}` }
  t.equal((await client.post('/v1/chat/completions', body, headers)).status, 200)
  t.equal(last().url, '/anthropic/v1/chat/completions')
  t.equal(findHeader(last().headers, 'authorization'), `Bearer ${sk}`)
})

t.test('400: a model of somebody who does not speak this format', async t => {
  const { status, body } = await client.post(path, asks('hi', { model: 'openai/gpt-5' }), {
    'x-memory-key': key,
    authorization: `Bearer ${sk}`,
  })
  t.equal(status, 400)
  t.match(body, {
    type: 'error',
    error: { message: /openai does not speak/ },
    hint: /\/v1\/chat\/completions/,
  })
  t.equal(
    (await client.post(path, asks('hi', { max_tokens: 'x' }), { 'x-api-key': key })).status,
    400,
  )
  t.equal(
    (await client.post(path, asks('hi', { temperature: 1.5 }), { 'x-api-key': key })).status,
    400,
  )
})
