import t, { type Test } from 'tap'
import { workOn } from '#test/support/api.ts'
import { settled } from '#test/support/journal.ts'
import { anthropicOf, geminiOf, models, openaiOf } from '#test/support/model-provider/clients.ts'
import { reply } from '#test/support/model-provider/fixtures.ts'
import { proxyWorld, through } from '#test/support/model-provider/world.ts'
import { until } from '#test/support/until.ts'
import { documentsOf } from '#test/support/vault.ts'

const world = await proxyWorld(t)
const { provider, backend } = world
await workOn(backend)

const system = 'You are a terse butler.'
const fact = 'My dentist is Dr. Okafor in Baker Street.'
const question = 'What is the name of my dentist?'
const block =
  /^<memory_context>\n\[[^\]]+ · user\] My dentist is Dr\. Okafor[^]*<\/memory_context>\n/

const stored = async (key: string) =>
  (await documentsOf(backend, key)).map(({ role, text }) => [role, text])

// oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
const lastAsked = (): any => JSON.parse(provider.seen.at(-1)!.body.toString())

const asks = {
  openai: async (key: string, text: string, stream: boolean) => {
    const messages = [
      { role: 'system' as const, content: system },
      { role: 'user' as const, content: text },
    ]
    const { chat } = openaiOf(through(world, key))
    const body = { model: models.openai, messages }
    if (stream) await chat.completions.stream(body).finalMessage()
    else await chat.completions.create(body)
  },
  anthropic: async (key: string, text: string, stream: boolean) => {
    const messages = [{ role: 'user' as const, content: text }]
    const body = { model: models.anthropic, max_tokens: 100, system, messages }
    const client = anthropicOf(through(world, key))
    if (stream) await client.messages.stream(body).finalMessage()
    else await client.messages.create(body)
  },
  google: async (key: string, text: string, stream: boolean) => {
    const model = geminiOf(through(world, key), { systemInstruction: system })
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
  google: (t: Test) => {
    const { contents, systemInstruction } = lastAsked()
    t.match(systemInstruction, { parts: [{ text: system }] })
    t.equal(contents.length, 1)
    const [memory, text] = contents[0].parts
    t.same(text, { text: question })
    return memory.text as string
  },
}

const families = ['openai', 'anthropic', 'google'] as const

for (const [index, teller] of families.entries()) {
  for (const stream of [false, true]) {
    t.test(`told to ${teller}${stream ? ', streaming' : ''}, known to every model`, async t => {
      const key = await world.newKey()
      await asks[teller](key, fact, stream)
      await until('the exchange is stored', async () => (await stored(key)).length === 2)
      await settled(backend, 10_000)
      t.same((await stored(key)).toSorted(), [
        ['assistant', reply],
        ['user', fact],
      ])
      t.notMatch(provider.seen.at(-1)!.body.toString(), 'memory_context', 'nothing was known then')

      for (const other of [1, 2, 3].map(step => families[(index + step) % 3]!)) {
        await asks[other](key, question, !stream)
        t.match(asked[other](t), block, other)
      }
      await until('all of it is stored', async () => (await stored(key)).length === 8)
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
  await until('the exchange is stored', async () => (await stored(key)).length === 2)
  await settled(backend, 10_000)
  const { response } = await openaiOf(through(world, key))
    .chat.completions.create(
      { model: models.openai, messages: [{ role: 'user', content: question }] },
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
    openaiOf(through(world, key)).chat.completions.create(
      { model: models.openai, messages: [{ role: 'user', content }] },
      session === undefined ? {} : { headers: { 'X-Session-ID': session } },
    )
  await say('My dentist is Dr. Okafor.')
  await say('My dentist has moved to Oxford.', 'a')
  await until('both are stored', async () => (await stored(key)).length === 4)
  await settled(backend, 10_000)
  await say(question, 'a')
  t.match(lastAsked().messages[0].content, /Okafor[^]*Oxford/)
  await say(question, 'b')
  t.match(lastAsked().messages[0].content, /Okafor/)
  t.notMatch(lastAsked().messages[0].content, /Oxford/)
})

t.test('a vault stays its own: another key of the account knows nothing', async t => {
  const [one, other] = [await world.newKey(), await world.newKey()]
  await asks.anthropic(one, fact, false)
  await until('it is stored', async () => (await stored(one)).length === 2)
  await asks.anthropic(other, question, false)
  t.notMatch(provider.seen.at(-1)!.body.toString(), /Okafor|memory_context/)
})
