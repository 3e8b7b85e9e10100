import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { goldenAnswers } from '#test/support/samples/golden/index.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startModelProvider(t)
const { backend, base } = await startService(t, { env: provider.env, jobs: ['ingest'] })
const client = createTestClient(base)

const path = '/v1/responses'
const last = () => provider.requests.at(-1)!
const lastBody = () => JSON.parse(last().body.toString())
const user = (text: string) => ({ role: 'user', content: [{ type: 'input_text', text }] })
const completed = (text: string, more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  error: null,
  output: [
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
  ],
  usage: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
  ...more,
})

async function vaultOfBoat(): Promise<{ key: string; headers: Record<string, string> }> {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The boat is called Nausicaa.' }])
  return { key, headers: { authorization: `Bearer ${key}`, 'x-provider-key': 'sk-1' } }
}

const textsOf = async (key: string) =>
  (await readDocuments(backend, key)).map(({ role, text }) => `${role}: ${text}`).slice(1)

t.test('200: memory around a call, at the provider of the model', async t => {
  const { key, headers } = await vaultOfBoat()
  const models = { openai: 'gpt-5', xai: 'xai/grok-4', openrouter: 'openrouter/openai/gpt-5' }
  for (const [name, model] of Object.entries({ ...models, groq: 'groq/m', vllm: 'vllm/a/b' })) {
    provider.respondNext(respondJson(completed('Nausicaa.')))
    const answer = await client.post(path, { model, input: 'What is the boat called?' }, headers)
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('x-memory-status'), 'ok', name)
    t.equal(last().url, `/${name}/v1/responses`)
    t.equal(findHeader(last().headers, 'authorization'), 'Bearer sk-1')
    t.match(lastBody().input, [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: /Nausicaa/ }] },
      { role: 'user', content: 'What is the boat called?' },
    ])
  }
  await waitUntilSettled(backend)
  t.same([...new Set(await textsOf(key))].toSorted(), [
    'assistant: Nausicaa.',
    'user: What is the boat called?',
  ])
})

t.test('200: what the provider keeps of a conversation is not rewritten', async t => {
  const { key, headers } = await vaultOfBoat()
  const call = (body: object) => client.post(path, { model: 'gpt-5', ...body }, headers)
  provider.respondAlways(respondJson(completed('It is Nausicaa.')))
  t.equal((await call({ previous_response_id: 'resp_0', input: 'Which boat?' })).status, 200)
  t.match(lastBody(), { previous_response_id: 'resp_0', input: [{}, { content: 'Which boat?' }] })
  const output = { type: 'function_call_output', call_id: 'c', output: 'The boat is grey.' }
  const step = { previous_response_id: 'resp_1', input: [output] }
  const answer = await call(step)
  t.equal(answer.headers.get('x-memory-status'), 'none')
  t.same(lastBody(), { model: 'gpt-5', ...step })
  t.equal((await call({ conversation: 'conv_1', prompt: { id: 'p' } })).status, 200)
  t.same(lastBody(), { model: 'gpt-5', conversation: 'conv_1', prompt: { id: 'p' } })
  provider.respondAlways()
  await waitUntilSettled(backend)
  const texts = await textsOf(key)
  t.equal(texts.filter(text => text === 'user: Which boat?').length, 1)
  t.notMatch(texts.join('\n'), 'grey')
})

t.test('two conversations of the provider are two turns, though they say the same', async t => {
  const { key, headers } = await vaultOfBoat()
  provider.respondAlways(respondJson({ error: { message: 'busy' } }, { status: 500 }))
  for (const conversation of ['conv_1', 'conv_1', 'conv_2', { id: 'conv_3' }]) {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-5', conversation, input: 'Yes, the boat.' }),
    })
    await response.text()
    t.equal(response.status, 500)
  }
  provider.respondAlways()
  await waitUntilSettled(backend)
  t.equal((await textsOf(key)).length, 3, 'a call that failed is told once')
})

t.test('200: a client that leaves at response.completed has a whole answer', async t => {
  const { key, headers } = await vaultOfBoat()
  const { bytes, reply } = goldenAnswers.find(({ name }) => name === 'responses/text.sse')!
  provider.respondNext(async (_seen, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream' })
    await answer.write(bytes)
  })
  const leaving = new AbortController()
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5', stream: true, input: [user('And the cat?')] }),
    signal: leaving.signal,
  })
  let heard = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    heard += chunk
    if (heard.includes('event: response.completed') && heard.endsWith('\n\n')) break
  }
  leaving.abort()
  t.equal(await last().outcome, 'left')
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 3)
  const documents = (await readDocuments(backend, key)).slice(1)
  t.same(
    documents.map(({ text }) => text),
    ['And the cat?', reply.text],
  )
  t.notOk(documents.some(document => 'interrupted' in document && document.interrupted))
})

t.test('200: of a call in the background the user is stored, once', async t => {
  const { key, headers } = await vaultOfBoat()
  provider.respondNext(respondJson(completed('', { status: 'queued', output: [] })))
  const body = { model: 'gpt-5', background: true, input: [user('Paint the boat.')] }
  t.equal((await client.post(path, body, headers)).status, 200)
  await waitUntilSettled(backend)
  t.same(await textsOf(key), ['user: Paint the boat.'])
})

t.test('an Idempotency-Key, as in every family', async t => {
  const { headers } = await vaultOfBoat()
  provider.respondAlways(respondJson(completed('Aye.')))
  const body = { model: 'gpt-5', input: 'Which boat is it?' }
  const once = { ...headers, 'idempotency-key': 'k-1', 'x-session-id': 'galley' }
  const before = provider.requests.length
  const [first, second] = [await client.post(path, body, once), await client.post(path, body, once)]
  t.same(second.body, first.body)
  t.equal(provider.requests.length, before + 1)
  provider.respondAlways()
})

t.test('400: a provider without Responses, and what to call', async t => {
  const { headers } = await vaultOfBoat()
  for (const model of ['claude-sonnet-5', 'mistral/m', 'google/gemini-2.5-flash']) {
    const { status, body } = await client.post(path, { model, input: 'hi' }, headers)
    t.equal(status, 400)
    t.match(body, {
      error: { message: /does not speak this format.*\/v1\/chat\/completions/ },
      hint: /responses is for openai, openrouter, xai, groq, ollama, vllm; .*\/v1\/chat\/completions/,
    })
  }
  for (const body of [
    { input: 'hi' },
    { model: 'gpt-5', input: 5 },
    { model: 'gpt-5', stream: 'x' },
  ]) {
    t.equal((await client.post(path, body, headers)).status, 400)
  }
})

t.test('426: a websocket is refused in words, and the client knows what to do', async t => {
  const { key } = await vaultOfBoat()
  const { request } = await import('node:http')
  const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
    const asked = request(base + path, {
      headers: {
        authorization: `Bearer ${key}`,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        'sec-websocket-version': '13',
      },
    })
    asked.once('error', reject)
    asked.once('response', response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('end', () =>
        resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString() }),
      )
    })
    asked.end()
  })
  t.equal(answer.status, 426)
  t.match(answer.body, /WebSocket.*POST/)
  t.equal((await client.get(path)).status, 405)
})
