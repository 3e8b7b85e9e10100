import { APIError, type Anthropic } from '@anthropic-ai/sdk'
import t from 'tap'
import { respondError } from '#test/support/model-provider/answers.ts'
import { compareWithDirect } from '#test/support/model-provider/compare.ts'
import { pngPixel } from '#test/support/model-provider/fixtures.ts'
import { createAnthropicClient, modelNames } from '#test/support/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { findHeader } from '#test/support/recording-server.ts'

const world = await startProxyFixture(t)
const model = modelNames.anthropic
const max_tokens = 200

const ask = (content: string) => [{ role: 'user' as const, content }]

t.test('200: a message', async t => {
  const { result, seen } = await compareWithDirect(t, world, to =>
    createAnthropicClient(to).messages.create({
      model,
      max_tokens,
      system: 'You are terse.',
      messages: ask('My bicycle is orange.'),
    }),
  )
  t.match(result.content, [{ type: 'text', text: /Crème brûlée, 東京 and a 🦊/ }])
  t.equal(findHeader(seen[0]!.headers, 'anthropic-version'), '2026-10-21')
})

t.test('200: a stream, event by event', async t => {
  const { result } = await compareWithDirect(t, world, async to => {
    const stream = createAnthropicClient(to).messages.stream({
      model,
      max_tokens,
      messages: ask('More.'),
    })
    const events = await Array.fromAsync(stream)
    return { events, message: await stream.finalMessage() }
  })
  t.ok(result.events.length > 8)
  t.match(result.message, { stop_reason: 'end_turn', usage: { output_tokens: 9 } })
})

const forecast = {
  name: 'forecast',
  description: 'The weather to come',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' }, days: { type: 'number' } },
    required: ['city'],
  },
}

for (const streaming of [false, true]) {
  t.test(`200: a tool is called and answered${streaming ? ', streaming' : ''}`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const messages: Anthropic.MessageParam[] = ask('What will the weather be?')
      const turn = async () => {
        const body = { model, max_tokens, messages, tools: [forecast] }
        if (!streaming) return await createAnthropicClient(to).messages.create(body)
        return await createAnthropicClient(to).messages.stream(body).finalMessage()
      }
      const asks = await turn()
      const use = asks.content.find(block => block.type === 'tool_use')!
      messages.push(
        { role: 'assistant', content: asks.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: use.id, content: '{"sky":"clear"}' }],
        },
      )
      return [use.input, (await turn()).content]
    })
    t.match(result, [{ city: 'Lisbon', days: 2 }, [{ text: 'The forecast says sun.' }]])
    t.equal(seen.length, 2)
  })
}

t.test('200: a structured answer, by a tool that must be used', async t => {
  const { result } = await compareWithDirect(t, world, to =>
    createAnthropicClient(to).messages.create({
      model,
      max_tokens,
      messages: ask('The weather please'),
      tools: [forecast],
      tool_choice: { type: 'tool', name: 'forecast' },
    }),
  )
  t.match(result.content, [{ type: 'tool_use', input: { city: 'Lisbon' } }])
})

t.test('200: pictures, cache marks, thinking and beta features', async t => {
  const { seen } = await compareWithDirect(t, world, async to => {
    const message = await createAnthropicClient(to).beta.messages.create({
      model,
      max_tokens: 4_000,
      betas: ['files-api-2025-04-14'],
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      system: [{ type: 'text', text: 'Long rules.', cache_control: { type: 'ephemeral' } }],
      metadata: { user_id: 'ada' },
      messages: [
        { role: 'user', content: 'Remember the fox.' },
        { role: 'assistant', content: [{ type: 'text', text: 'I do.' }] },
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pngPixel } },
            { type: 'text', text: 'What is it?', cache_control: { type: 'ephemeral' } },
          ],
        },
      ],
    })
    return message.content
  })
  t.match(findHeader(seen[0]!.headers, 'anthropic-beta'), 'files-api-2025-04-14')
})

t.test('200: thinking is streamed to the client', async t => {
  const { result } = await compareWithDirect(t, world, async to => {
    const stream = createAnthropicClient(to).messages.stream({
      model,
      max_tokens,
      messages: ask('think'),
    })
    return (await stream.finalMessage()).content
  })
  t.match(result, [{ type: 'thinking', thinking: 'A secret thought.' }, { type: 'text' }])
})

for (const status of [400, 401, 413, 429, 500, 529]) {
  t.test(`${status}: the provider's error is the client's error`, async t => {
    for (const stream of [false, true]) {
      const limits = { 'retry-after': '9', 'anthropic-ratelimit-requests-remaining': '0' }
      const refusal = respondError('anthropic', status, status === 429 ? limits : {})
      world.provider.respondNext(refusal, refusal)
      const { result } = await compareWithDirect(t, world, async to => {
        const body = { model, max_tokens, messages: ask('Hi'), stream }
        const error = await createAnthropicClient(to)
          .messages.create(body)
          .then(
            () => null,
            (error: unknown) => error,
          )
        if (!(error instanceof APIError)) throw new Error('no error')
        const after = (error.headers as Headers).get('retry-after')
        const { name, message, requestID } = error
        return { status: error.status as number, name, message, requestID, after }
      })
      t.match(result, { status, requestID: 'req_anthropic_1' })
      t.equal(result.after, status === 429 ? '9' : null)
    }
  })
}
