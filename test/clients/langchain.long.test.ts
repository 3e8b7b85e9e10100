import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI } from '@langchain/openai'
import t from 'tap'
import { z } from 'zod'
import { respondError } from '#test/support/model-provider/answers.ts'
import { compareWithDirect } from '#test/support/model-provider/compare.ts'
import { pngPixel } from '#test/support/model-provider/fixtures.ts'
import {
  startProxyFixture,
  type FamilyName,
  type ClientTarget,
} from '#test/support/model-provider/proxy-fixture.ts'

// It would otherwise report what it does to a service of its makers.
process.env.LANGCHAIN_TRACING_V2 = 'false'

const world = await startProxyFixture(t)

const models: Record<FamilyName, (to: ClientTarget) => BaseChatModel> = {
  openai: ({ baseUrl, apiKey, fetch }) =>
    new ChatOpenAI({
      model: 'gpt-4o-mini',
      apiKey: apiKey.openai,
      maxRetries: 0,
      configuration: { baseURL: baseUrl.openai, fetch },
    }),
  anthropic: ({ baseUrl, apiKey, fetch }) =>
    new ChatAnthropic({
      model: 'claude-sonnet-5',
      apiKey: apiKey.anthropic,
      anthropicApiUrl: baseUrl.anthropic,
      maxRetries: 0,
      clientOptions: { fetch },
    }),
  google: ({ baseUrl, apiKey, headers }) =>
    new ChatGoogleGenerativeAI({
      model: 'gemini-2.5-flash',
      apiKey: apiKey.google,
      baseUrl: baseUrl.google,
      maxRetries: 0,
      ...(headers.google && { customHeaders: headers.google }),
    }),
}

const conversation = [
  new SystemMessage('You are terse.'),
  new HumanMessage('My bicycle is orange.'),
  new AIMessage('A fine colour.'),
  new HumanMessage('What would go with it?'),
]

const forecast = tool(({ city }) => ({ city, sky: 'clear' }), {
  name: 'forecast',
  description: 'The weather to come',
  schema: z.object({ city: z.string(), days: z.number().optional() }),
})

for (const family of ['openai', 'anthropic', 'google'] as const) {
  const modelOf = models[family]

  t.test(`200: ${family}: a conversation, at once and streaming`, async t => {
    const { result } = await compareWithDirect(t, world, async to => {
      const { content, usage_metadata: usage } = await modelOf(to).invoke(conversation)
      const chunks = await Array.fromAsync(await modelOf(to).stream(conversation))
      return { content, usage, chunks: chunks.map(chunk => chunk.text) }
    })
    t.match(JSON.stringify(result.content), 'Crème brûlée, 東京 and a 🦊')
    t.match(result.chunks.join(''), 'Crème brûlée, 東京 and a 🦊')
    t.ok(result.chunks.length > 5)
  })

  t.test(`200: ${family}: a tool is called and answered`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const model = modelOf(to).bindTools!([forecast])
      const asked = new HumanMessage('What will the weather be?')
      const called = (await model.invoke([asked])) as AIMessage
      const call = called.tool_calls![0]!
      const answer = new ToolMessage({
        content: JSON.stringify(await forecast.invoke(call.args as { city: string })),
        tool_call_id: call.id ?? 'call_1',
        name: call.name,
      })
      return { args: call.args, text: (await model.invoke([asked, called, answer])).text }
    })
    t.match(result, { args: { city: 'Lisbon' }, text: 'The forecast says sun.' })
    t.equal(seen.length, 2)
  })

  t.test(`200: ${family}: a picture beside the words`, async t => {
    const { result } = await compareWithDirect(t, world, async to => {
      const content = [
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${pngPixel}` } },
      ]
      return (await modelOf(to).invoke([new HumanMessage({ content })])).text
    })
    t.match(result, 'Noted')
  })

  for (const status of [400, 429, 529]) {
    t.test(`${status}: ${family}: the provider's error is the client's error`, async t => {
      const refusal = respondError(family, status)
      world.provider.respondNext(refusal, refusal)
      const { result } = await compareWithDirect(t, world, async to => {
        const error = await modelOf(to)
          .invoke('Hi')
          .then(
            () => null,
            (error: unknown) => error as Error & { status: number },
          )
        // Google's client names the address in its message.
        return { status: error?.status, said: error?.message.includes(`answer ${status}`) }
      })
      t.same(result, { status, said: true })
    })
  }
}

t.test('200: openai: a structured answer', async t => {
  const schema = z.object({ city: z.string(), sunny: z.boolean() })
  const { result } = await compareWithDirect(t, world, async to => {
    const model = modelOf(to).withStructuredOutput(schema, { method: 'jsonSchema' })
    return await model.invoke('Lisbon, as an object')
  })
  t.same(result, { city: 'Lisbon', sunny: true })
})

const modelOf = (to: ClientTarget) => models.openai(to) as ChatOpenAI
