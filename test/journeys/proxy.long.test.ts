import t, { type Test } from 'tap'
import { startJobWorkers } from '#test/support/api.ts'
import { waitUntilSettled } from '#test/support/exchange-journal.ts'
import {
  createAnthropicClient,
  createGeminiClient,
  modelNames,
  createOpenAiClient,
} from '#test/support/model-provider/clients.ts'
import { defaultReply } from '#test/support/model-provider/fixtures.ts'
import { startProxyFixture, proxiedTarget } from '#test/support/model-provider/proxy-fixture.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readDocuments } from '#test/support/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend } = world
await startJobWorkers(backend)

const system = 'You are a terse butler.'
const fact = 'My dentist is Dr. Okafor in Baker Street.'
const question = 'What is the name of my dentist?'
const block =
  /^<memory_context>\n\[[^\]]+ · user\] My dentist is Dr\. Okafor[^]*<\/memory_context>\n/

const stored = async (key: string) =>
  (await readDocuments(backend, key)).map(({ role, text }) => [role, text])

// oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
const lastAsked = (): any => JSON.parse(provider.requests.at(-1)!.body.toString())

const asks = {
  openai: async (key: string, text: string, stream: boolean) => {
    const messages = [
      { role: 'system' as const, content: system },
      { role: 'user' as const, content: text },
    ]
    const { chat } = createOpenAiClient(proxiedTarget(world, key))
    const body = { model: modelNames.openai, messages }
    if (stream) await chat.completions.stream(body).finalMessage()
    else await chat.completions.create(body)
  },
  anthropic: async (key: string, text: string, stream: boolean) => {
    const messages = [{ role: 'user' as const, content: text }]
    const body = { model: modelNames.anthropic, max_tokens: 100, system, messages }
    const client = createAnthropicClient(proxiedTarget(world, key))
    if (stream) await client.messages.stream(body).finalMessage()
    else await client.messages.create(body)
  },
  responses: async (key: string, text: string, stream: boolean) => {
    const client = createOpenAiClient(proxiedTarget(world, key))
    const body = { model: modelNames.openai, instructions: system, input: text }
    if (stream) await client.responses.stream(body).finalResponse()
    else await client.responses.create(body)
  },
  google: async (key: string, text: string, stream: boolean) => {
    const model = createGeminiClient(proxiedTarget(world, key), { systemInstruction: system })
    if (stream) await (await model.generateContentStream(text)).response
    else await model.generateContent(text)
  },
}

/** What is in front of the question, and the question, as the provider was asked. */
const asked = {
  openai: (t: Test) => {
    const { messages } = lastAsked()
    t.equal(messages.length, 3)
    t.same(messages[0], { role: 'system', content: system })
    t.same(messages.at(-1), { role: 'user', content: question })
    return messages[1].content as string
  },
  anthropic: (t: Test) => {
    const body = lastAsked()
    t.same(body.system, system)
    t.equal(body.messages.length, 1)
    const [memory, text] = body.messages[0].content
    t.same(text, { type: 'text', text: question })
    t.same(Object.keys(memory), ['type', 'text'], 'no cache mark of its own')
    return memory.text as string
  },
  responses: (t: Test) => {
    const { input, instructions } = lastAsked()
    t.equal(instructions, system)
    t.equal(input.length, 2)
    t.same(input[1], { role: 'user', content: question })
    t.match(input[0], { type: 'message', role: 'user', content: [{ type: 'input_text' }] })
    return input[0].content[0].text as string
  },
  google: (t: Test) => {
    const { contents, systemInstruction } = lastAsked()
    t.match(systemInstruction, { parts: [{ text: system }] })
    t.equal(contents.length, 1)
    const [memory, text] = contents[0].parts
    t.same(text, { text: question })
    return memory.text as string
  },
}

const families = ['openai', 'anthropic', 'google', 'responses'] as const

for (const [index, teller] of families.entries()) {
  for (const stream of [false, true]) {
    t.test(`told to ${teller}${stream ? ', streaming' : ''}, recalled for every model`, async t => {
      const key = await world.newKey()
      await asks[teller](key, fact, stream)
      await waitUntil('the exchange is stored', async () => (await stored(key)).length === 2)
      await waitUntilSettled(backend)
      t.same((await stored(key)).toSorted(), [
        ['assistant', defaultReply],
        ['user', fact],
      ])
      t.notMatch(
        provider.requests.at(-1)!.body.toString(),
        'memory_context',
        'nothing was known then',
      )

      for (const other of families.toSpliced(index, 1)) {
        await asks[other](key, question, !stream)
        t.match(asked[other](t), block, other)
      }
      await waitUntil(
        'all of it is stored',
        async () => (await stored(key)).length === 2 * families.length,
      )
      const texts = (await stored(key)).map(([, text]) => text!)
      t.same(
        texts.filter(text => /butler|memory_context|background recalled/.test(text)),
        [],
        'neither the system prompt nor the block is stored',
      )
    })
  }
}

t.test('200: the answer says what memory did', async t => {
  const key = await world.newKey()
  await asks.openai(key, fact, false)
  await waitUntil('the exchange is stored', async () => (await stored(key)).length === 2)
  await waitUntilSettled(backend)
  const { response } = await createOpenAiClient(proxiedTarget(world, key))
    .chat.completions.create(
      { model: modelNames.openai, messages: [{ role: 'user', content: question }] },
      { headers: { 'X-Session-ID': 'kitchen' } },
    )
    .withResponse()
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

t.test('what was said in a session is known in it, and what is in the core everywhere', async t => {
  const key = await world.newKey()
  const say = (content: string, session?: string) =>
    createOpenAiClient(proxiedTarget(world, key)).chat.completions.create(
      { model: modelNames.openai, messages: [{ role: 'user', content }] },
      session === undefined ? {} : { headers: { 'X-Session-ID': session } },
    )
  await say('My dentist is Dr. Okafor.')
  await say('My dentist has moved to Oxford.', 'a')
  await waitUntil('both are stored', async () => (await stored(key)).length === 4)
  await waitUntilSettled(backend)
  await say(question, 'a')
  t.match(lastAsked().messages[0].content, /Okafor[^]*Oxford/)
  await say(question, 'b')
  t.match(lastAsked().messages[0].content, /Okafor/)
  t.notMatch(lastAsked().messages[0].content, /Oxford/)
})

t.test('a vault stays its own: another key of the account finds nothing', async t => {
  const [one, other] = [await world.newKey(), await world.newKey()]
  await asks.anthropic(one, fact, false)
  await waitUntil('it is stored', async () => (await stored(one)).length === 2)
  await asks.anthropic(other, question, false)
  t.notMatch(provider.requests.at(-1)!.body.toString(), /Okafor|memory_context/)
})
