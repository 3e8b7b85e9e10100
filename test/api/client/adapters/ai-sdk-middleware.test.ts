import { createOpenAI } from '@ai-sdk/openai'
import {
  generateText,
  stepCountIs,
  streamText,
  tool,
  wrapLanguageModel,
  type ModelMessage,
} from 'ai'
import t from 'tap'
import { z } from 'zod'
import {
  vaultMiddleware,
  type VaultMiddlewareOptions,
} from '#api/client/adapters/ai-sdk-middleware.ts'
import { vaultClient } from '#api/client/client.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  providerKey,
  providerUrl,
  startModelProvider,
} from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

// The provider is called without the proxy: the memory comes from the middleware alone.
const openai = createOpenAI({
  baseURL: providerUrl(new URL(provider.env.OPENAI_BASE_URL!).origin, 'openai'),
  apiKey: providerKey('openai'),
})

async function startVault(options?: VaultMiddlewareOptions<'v4'>) {
  const vault = vaultClient(base, await buildKey(backend))
  const middleware = vaultMiddleware(vault, options)
  const model = wrapLanguageModel({ model: openai.chat('gpt-4o-mini'), middleware })
  const remember = (content: string) =>
    vault.call('POST /v1/memory/ingest', {
      query: { wait: true },
      body: { messages: [{ role: 'user', content }] },
    })
  provider.clearRequests()
  return { vault, model, remember }
}

const sentMessages = (): { role: string; content: unknown }[][] =>
  provider.requests.map(({ body }) => JSON.parse(body.toString()).messages)

async function storedTexts(vault: Awaited<ReturnType<typeof startVault>>['vault']) {
  const { items } = await vault.call('GET /v1/operations')
  for (const { operation_id: id } of items) {
    for (;;) {
      const { state } = await vault.call('GET /v1/operations/:id', { params: { id } })
      if (state === 'done') break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  const { items: memories } = await vault.call('GET /v1/memory/list', { query: { limit: 200 } })
  return memories.map(({ text }) => text)
}

t.test('a call gets what is remembered, and is remembered as it was asked', async t => {
  const { vault, model, remember } = await startVault()
  await remember('My cat is called Ada.')
  const history: ModelMessage[] = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: 'What is my cat called?' },
  ]
  const { text } = await generateText({ model, system: 'You are terse.', messages: history })
  const [messages] = sentMessages()
  t.same(
    messages!.slice(0, 3).map(({ content }) => content),
    ['You are terse.', 'Hello', 'Hello!'],
  )
  t.match(
    JSON.stringify(messages!.at(-1)),
    /memory_context.*My cat is called Ada.*What is my cat called/,
  )
  const stored = await storedTexts(vault)
  t.same(stored.toSorted(), ['My cat is called Ada.', 'What is my cat called?', text].toSorted())
})

t.test('a stream arrives as it is, and is remembered at its end', async t => {
  const { vault, model, remember } = await startVault({ sessionId: 'a session' })
  await remember('My cat is called Ada.')
  const direct = await streamText({
    model: openai.chat('gpt-4o-mini'),
    prompt: 'My bicycle is orange.',
  }).text
  const streamed = await Array.fromAsync(
    streamText({ model, prompt: 'My bicycle is orange.' }).textStream,
  )
  t.equal(streamed.join(''), direct)
  t.ok(streamed.length > 5)
  await storedTexts(vault)
  const { items } = await vault.call('GET /v1/memory/sessions')
  t.match(items, [{ session_id: 'a session' }])
  t.notMatch(JSON.stringify(sentMessages()), 'memory_context', 'a session of its own')
})

t.test('steps of a loop get the same block, and only its end is stored', async t => {
  const { vault, model, remember } = await startVault()
  await remember('The weather matters to me because I sail in Lisbon.')
  const { text, steps } = await generateText({
    model,
    prompt: 'What will the weather be?',
    tools: {
      forecast: tool({
        description: 'The weather to come',
        inputSchema: z.object({ city: z.string(), days: z.number().optional() }),
        execute: ({ city }) => ({ city, sky: 'clear' }),
      }),
    },
    stopWhen: stepCountIs(3),
  })
  t.equal(steps.length, 2)
  const [first, second] = sentMessages()
  t.match(JSON.stringify(first), 'memory_context')
  t.same(second!.slice(0, first!.length), first, 'what the provider has cached stays as it is')
  t.same(
    (await storedTexts(vault)).filter(content => content === text),
    [text],
  )
})

t.test('a turn in which the provider ran a tool is stored', async t => {
  const { vault } = await startVault()
  const { wrapGenerate, wrapStream, transformParams } = vaultMiddleware(vault)
  const call = { toolCallId: 'call_1', toolName: 'web_search', providerExecuted: true }
  const toolParts = [
    { type: 'tool-call', ...call, input: '{}' },
    { type: 'tool-result', ...call, result: {} },
  ]
  const ask = async (text: string) =>
    transformParams({ params: { prompt: [{ role: 'user', content: [{ type: 'text', text }] }] } })
  const generated = { content: [...toolParts, { type: 'text', text: 'It rains in Porto.' }] }
  await wrapGenerate({
    params: await ask('What is the weather in Porto?'),
    doGenerate: async () => generated,
  })
  const parts = [...toolParts, { type: 'text-delta', id: '1', delta: 'It is dry in Faro.' }]
  const source = new ReadableStream<object>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
  const { stream } = await wrapStream({
    params: await ask('What is the weather in Faro?'),
    doStream: async () => ({ stream: source }),
  })
  t.same(await Array.fromAsync(stream), parts)
  t.same((await storedTexts(vault)).toSorted(), [
    'It is dry in Faro.',
    'It rains in Porto.',
    'What is the weather in Faro?',
    'What is the weather in Porto?',
  ])
})

t.test('a turn that the person stops is stored as far as it was heard', async t => {
  const { vault, model } = await startVault()
  const stop = new AbortController()
  const { textStream } = streamText({ model, prompt: 'My kite is long.', abortSignal: stop.signal })
  let heard = ''
  for await (const text of textStream) {
    heard += text
    if (heard.length > 7) stop.abort()
  }
  const { wrapStream, transformParams } = vaultMiddleware(vault)
  const content = [{ type: 'text', text: 'My canoe is red.' }]
  const params = await transformParams({ params: { prompt: [{ role: 'user', content }] } })
  const texts = ['Noted', ', a red', ' canoe.']
  const source = new ReadableStream<object>({
    pull: controller =>
      controller.enqueue({ type: 'text-delta', id: '1', delta: texts.shift() ?? '' }),
  })
  const { stream } = await wrapStream({ params, doStream: async () => ({ stream: source }) })
  const reader = stream.getReader()
  await reader.read()
  await reader.read()
  await reader.cancel()
  let stored: string[] = []
  // The request of a call that is aborted may come later.
  await waitUntil('both turns are stored', async () => {
    stored = await storedTexts(vault)
    return ['My kite is long.', 'My canoe is red.'].every(text => stored.includes(text))
  })
  t.ok(
    stored.some(text => text.startsWith('Noted, a red')),
    'what was heard',
  )
  t.ok(
    stored.some(text => heard.startsWith(text.slice(0, 7))),
    'of a call that is aborted, too',
  )
})

t.test('texts around a tool of the provider are apart', async t => {
  const { vault } = await startVault()
  const { wrapGenerate, wrapStream, transformParams } = vaultMiddleware(vault)
  const ask = async (text: string) =>
    transformParams({ params: { prompt: [{ role: 'user', content: [{ type: 'text', text }] }] } })
  const said = ['I look.', 'It is felt.'].map(text => ({ type: 'text', text }))
  await wrapGenerate({ params: await ask('A?'), doGenerate: async () => ({ content: said }) })
  const parts = said.flatMap(({ text }, id) => [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
  ])
  const source = new ReadableStream<object>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
  const { stream } = await wrapStream({
    params: await ask('B?'),
    doStream: async () => ({ stream: source }),
  })
  await Array.fromAsync(stream)
  const answers = (await storedTexts(vault)).filter(text => text.startsWith('I look'))
  t.same(answers, ['I look.\nIt is felt.', 'I look.\nIt is felt.'])
})

t.test('the same prompt asked again gets what is remembered by then', async t => {
  const { model, remember } = await startVault({ store: false })
  const prompt = 'What is my cat called?'
  await generateText({ model, prompt })
  await remember('My cat is called Ada.')
  await generateText({ model, prompt })
  const [first, second] = sentMessages().map(messages => JSON.stringify(messages))
  t.notMatch(first, 'memory_context')
  t.match(second, /memory_context.*My cat is called Ada/)
})

t.test('without a vault the model answers all the same', async t => {
  const faults: unknown[] = []
  const lost = vaultClient('http://127.0.0.1:9', 'mk_00000000000000000000000000000000')
  const middleware = vaultMiddleware(lost, { onError: error => faults.push(error) })
  const model = wrapLanguageModel({ model: openai.chat('gpt-4o-mini'), middleware })
  const { text } = await generateText({ model, prompt: 'My bicycle is orange.' })
  t.match(text, 'Crème brûlée')
  t.equal(faults.length, 2, 'of recalling and of storing')
})

t.test('store: false recalls only', async t => {
  const { vault, model, remember } = await startVault({ store: false })
  await remember('My cat is called Ada.')
  await generateText({ model, prompt: 'What is my cat called?' })
  t.match(JSON.stringify(sentMessages()), 'My cat is called Ada')
  t.same(await storedTexts(vault), ['My cat is called Ada.'])
})
