import { APIError, type OpenAI } from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import t from 'tap'
import { z } from 'zod'
import { respondJson, respondError } from '#test/support/model-provider/answers.ts'
import { compareWithDirect } from '#test/support/model-provider/compare.ts'
import { pngPixel } from '#test/support/model-provider/fixtures.ts'
import { modelNames, createOpenAiClient } from '#test/support/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'

const world = await startProxyFixture(t)
const model = modelNames.openai

const ask = (content: string) => [
  { role: 'system' as const, content: 'You are terse.' },
  { role: 'user' as const, content },
]

t.test('200: a chat', async t => {
  const { result } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to).chat.completions.create({
      model,
      messages: ask('My bicycle is orange.'),
    }),
  )
  t.match(result.choices[0]?.message.content, 'Crème brûlée, 東京 and a 🦊')
})

t.test('200: a stream, chunk by chunk, with its usage', async t => {
  const { result, recorded } = await compareWithDirect(t, world, async to => {
    const stream = await createOpenAiClient(to).chat.completions.create({
      model,
      messages: ask('Tell me more.'),
      stream: true,
      stream_options: { include_usage: true },
    })
    return await Array.fromAsync(stream)
  })
  t.ok(result.length > 5)
  t.match(result.at(-1)?.usage, { prompt_tokens: 21, completion_tokens: 9 })
  t.match(recorded[0]?.headers.get('content-type'), 'text/event-stream')
})

const forecast = {
  type: 'function' as const,
  function: {
    name: 'forecast',
    description: 'The weather to come',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'number' } },
      required: ['city'],
    },
  },
}

for (const stream of [false, true]) {
  t.test(`200: a tool is called and answered${stream ? ', streaming' : ''}`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const client = createOpenAiClient(to)
      const messages: OpenAI.ChatCompletionMessageParam[] = ask('What will the weather be?')
      const turn = async () => {
        if (!stream) {
          const answer = await client.chat.completions.create({
            model,
            messages,
            tools: [forecast],
          })
          return answer.choices[0]!.message
        }
        const running = client.chat.completions.stream({ model, messages, tools: [forecast] })
        return await running.finalMessage()
      }
      const asks = await turn()
      const call = asks.tool_calls![0]!
      messages.push(asks, { role: 'tool', tool_call_id: call.id, content: '{"sky":"clear"}' })
      return [asks, await turn()]
    })
    t.match(result, [
      { tool_calls: [{ function: { name: 'forecast' } }] },
      { content: 'The forecast says sun.' },
    ])
    t.equal(seen.length, 2)
  })
}

t.test('200: a structured answer', async t => {
  const Weather = z.object({ city: z.string(), sunny: z.boolean() })
  const { result } = await compareWithDirect(t, world, async to => {
    const answer = await createOpenAiClient(to).chat.completions.parse({
      model,
      messages: ask('Lisbon, as an object'),
      response_format: zodResponseFormat(Weather, 'weather'),
    })
    return answer.choices[0]!.message.parsed
  })
  t.same(result, { city: 'Lisbon', sunny: true })
})

t.test('200: a picture beside the words', async t => {
  const { result } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to).chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is on this picture?' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${pngPixel}` } },
          ],
        },
      ],
    }),
  )
  t.ok(result.choices.length)
})

t.test('200: what only some models know goes through untouched', async t => {
  const { seen } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to).chat.completions.create({
      model,
      messages: [
        { role: 'developer', content: '' },
        { role: 'user', content: 'One', name: 'ada' },
        { role: 'assistant', content: null, tool_calls: [] },
        { role: 'user', content: 'Two' },
      ],
      n: 2,
      store: true,
      metadata: { product: 'tests' },
      logit_bias: { '50256': -100 },
      seed: 7,
      reasoning_effort: 'low',
      prediction: { type: 'content', content: 'Three' },
    }),
  )
  t.match(JSON.parse(seen[0]!.body.toString()), {
    n: 2,
    store: true,
    metadata: { product: 'tests' },
  })
})

const limits = { 'retry-after': '7', 'x-ratelimit-reset-tokens': '6m0s' }

for (const status of [400, 401, 403, 404, 413, 422, 429, 500, 503, 529]) {
  t.test(`${status}: the provider's error is the client's error`, async t => {
    for (const stream of [false, true]) {
      const refusal = respondError('openai', status, status === 429 ? limits : {})
      world.provider.respondNext(refusal, refusal)
      const { result } = await compareWithDirect(t, world, async to => {
        const asked = createOpenAiClient(to).chat.completions.create({
          model,
          messages: ask('Hi'),
          stream,
        })
        const error = await asked.then(
          () => null,
          (error: unknown) => error,
        )
        if (!(error instanceof APIError)) throw new Error('no error')
        const { name, message, requestID, code } = error
        const after = (error.headers as Headers).get('retry-after')
        return { status: error.status as number, name, message, requestID, code, after }
      })
      t.match(result, { status, requestID: 'req_openai_1', code: 'told' })
      t.equal(result.after, status === 429 ? '7' : null)
    }
  })
}

t.test('200: the client tries again when the provider says so', async t => {
  const busy = respondError('openai', 429, { 'retry-after-ms': '20' })
  const fine = respondJson({ id: 'x', object: 'chat.completion', model, choices: [] })
  world.provider.respondNext(busy, fine, busy, fine)
  const { seen } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to, 1).chat.completions.create({ model, messages: ask('Again') }),
  )
  t.same(
    seen.map(({ response }) => response.status),
    [429, 200],
  )
})
