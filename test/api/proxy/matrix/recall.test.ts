import t from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** What is told in one dialect is recalled in all, each with the block where it belongs. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

const system = 'You are a terse butler.'
const fact = 'My dentist is Dr. Okafor in Baker Street.'
const question = 'What is the name of my dentist?'
const block =
  /^<memory_context>\n\[[^\]]+ · user\] My dentist is Dr\. Okafor[^]*<\/memory_context>\n/

/** A system prompt, where each dialect keeps it beside the messages. */
const systemFields: Record<ApiFormat, object> = {
  openai: {},
  responses: { instructions: system },
  anthropic: { system },
  google: { systemInstruction: { parts: [{ text: system }] } },
}

type Json = Record<string, unknown>

/** The conversation as the provider is asked, and where in it the text of the block stands. */
const asked: Record<ApiFormat, (text: string) => Json> = {
  openai: text => ({
    messages: [
      { role: 'user', content: text },
      { role: 'user', content: question },
    ],
  }),
  responses: text => ({
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
      { role: 'user', content: question },
    ],
  }),
  anthropic: text => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'text', text: question },
        ],
      },
    ],
  }),
  google: text => ({ contents: [{ role: 'user', parts: [{ text }, { text: question }] }] }),
}

const lastBody = () => provider.requests.at(-1)!.body.toString()

const storedOf = async (key: string) => {
  await waitUntilIdle(backend)
  return (await readDocuments(backend, key)).map(({ role, text }) => [role, text])
}

for (const teller of proxyDialects) {
  for (const stream of [false, true]) {
    const how = `${teller.format}${stream ? ', streaming' : ''}`
    t.test(`told in ${how}, recalled in every dialect`, async t => {
      const key = await newKey()
      const tell = { stream, more: systemFields[teller.format] }
      await (await callModel(base, key, teller, fact, tell)).text()
      const exchange = [
        ['user', fact],
        ['assistant', defaultReply],
      ]
      t.same(await storedOf(key), exchange, 'neither the system prompt nor a block')
      t.notMatch(lastBody(), 'memory_context', 'nothing was known then')

      for (const other of proxyDialects) {
        const more = systemFields[other.format]
        const options = { stream: !stream, more, headers: { 'x-memory-mode': 'read' } }
        const response = await callModel(base, key, other, question, options)
        await response.text()
        t.equal(response.headers.get('x-memory-status'), 'ok')
        const sent = JSON.parse(lastBody()) as Json
        const text = /<memory_context>(?:[^"\\]|\\.)*/.exec(lastBody())?.[0] ?? ''
        const context = JSON.parse(`"${text}"`) as string
        t.match(context, block, other.format)
        const plain = other.body(question, { stream: !stream })
        t.strictSame(sent, { ...plain, ...asked[other.format](context), ...more })
      }
      t.same(await storedOf(key), exchange)
    })
  }
}

const openai = proxyDialects[0]!

t.test('200: the answer says what memory did', async t => {
  const key = await newKey()
  await insertMemories(backend, key, [{ text: fact }])
  const headers = { 'x-session-id': 'kitchen' }
  const response = await callModel(base, key, openai, question, { headers })
  const header = (name: string) => response.headers.get(name)
  t.equal(header('x-memory-status'), 'ok')
  t.equal(header('x-memory-cache-safe'), 'true')
  t.equal(header('x-session-id'), 'kitchen')
  t.ok(Number(header('x-memory-tokens-injected')) > Number(header('x-memory-tokens-retrieved')))
  t.ok(Number(header('x-memory-tokens-retrieved')) > 5)
  t.ok(Number(header('x-total-ms')) >= Number(header('x-provider-response-ms')))
  t.match(JSON.parse(header('x-memory-reflection-debt')!), {
    raw_units: Number,
    raw_tokens: Number,
    raw_importance_equiv: Number,
    t2_count: 0,
    t2_importance: 0,
    t2_tokens: 0,
    threshold: 50_000,
    threshold_importance: 150,
    suggestion: null,
  })
})

t.test('what is said in a session is known in it, what is in the core everywhere', async t => {
  const [key, stranger] = [await newKey(), await newKey()]
  await insertMemories(backend, key, [{ text: fact }])
  const moved = 'My dentist has moved to Oxford.'
  await callModel(base, key, openai, moved, { headers: { 'x-session-id': 'a' } })
  await waitUntilIdle(backend)
  for (const [asker, session, isCore, isSession] of [
    [key, 'a', true, true],
    [key, 'b', true, false],
    [stranger, 'a', false, false],
  ] as const) {
    const headers = { 'x-session-id': session, 'x-memory-store': 'false' }
    await callModel(base, asker, openai, question, { headers })
    t.equal(lastBody().includes('Okafor'), isCore, session)
    t.equal(lastBody().includes('Oxford'), isSession, session)
  }
})
