import type { OpenAI } from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import t from 'tap'
import { z } from 'zod'
import { respondJson, respondWith } from '#test/support/model-provider/answers.ts'
import { modelNames, createOpenAiClient } from '#test/support/model-provider/clients.ts'
import { compareWithDirect } from '#test/support/model-provider/compare.ts'
import { pngPixel } from '#test/support/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'
import { goldenAnswers } from '#test/support/golden/index.ts'

/** The imitation makes another id for every item. */
const withoutIds = <Value>(value: Value): Value =>
  JSON.parse(
    JSON.stringify(value, (name, part: unknown) =>
      /^(?:item_)?id$/.test(name) ? undefined : part,
    ),
  ) as Value

/** OpenAI's own client over Responses: with an empty vault not a byte is different from a direct call. */

const world = await startProxyFixture(t)
const model = modelNames.openai

t.test('200: a response to a text', async t => {
  const { result, seen } = await compareWithDirect(t, world, async to => {
    const response = await createOpenAiClient(to).responses.create({
      model,
      instructions: 'You are terse.',
      input: 'My bicycle is orange.',
    })
    return withoutIds(response)
  })
  t.match(result.output_text, 'Crème brûlée, 東京 and a 🦊')
  t.equal(seen[0]!.url, '/openai/v1/responses')
})

t.test('200: a stream, event by event', async t => {
  const { result, recorded } = await compareWithDirect(t, world, async to => {
    const stream = await createOpenAiClient(to).responses.create({
      model,
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'Tell me more.' }] }],
      stream: true,
    })
    return withoutIds(await Array.fromAsync(stream))
  })
  t.equal(result[0]?.type, 'response.created')
  t.equal(result.at(-1)?.type, 'response.completed')
  t.ok(result.filter(({ type }) => type === 'response.output_text.delta').length > 3)
  t.match(recorded[0]?.headers.get('content-type'), 'text/event-stream')
})

t.test('200: each golden stream gives the client the same events', async t => {
  for (const { name, bytes, contentType } of goldenAnswers) {
    if (!/^responses\/(?:text|tools|search|refusal|incomplete)\.sse$/.test(name)) continue
    const answer = respondWith([bytes], { headers: { 'content-type': contentType } })
    world.provider.respondNext(answer, answer)
    const { result } = await compareWithDirect(t, world, async to => {
      const stream = await createOpenAiClient(to).responses.create({
        model,
        input: 'x',
        stream: true,
      })
      return await Array.fromAsync(stream)
    })
    t.ok(result.length > 3, name)
  }
})

const forecast: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'forecast',
  strict: true,
  description: 'The weather to come',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'number' } },
    required: ['city', 'days'],
    additionalProperties: false,
  },
}

for (const stream of [false, true]) {
  t.test(`200: a tool is called and answered${stream ? ', streaming' : ''}`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const { responses } = createOpenAiClient(to)
      const input: OpenAI.Responses.ResponseInput = [
        { role: 'user', content: 'What will the weather be?' },
      ]
      const turn = async (): Promise<OpenAI.Responses.ResponseOutputItem[]> => {
        const body = { model, input, tools: [forecast], store: false }
        const answer = stream
          ? await responses.stream(body).finalResponse()
          : await responses.create(body)
        return withoutIds(answer.output)
      }
      const asks = await turn()
      const call = asks.find(item => item.type === 'function_call')!
      input.push(...(asks as OpenAI.Responses.ResponseInput), {
        type: 'function_call_output',
        call_id: call.call_id,
        output: [{ type: 'input_text', text: '{"sky":"clear"}' }],
      })
      return [call.name, (await turn()).length]
    })
    t.same(result, ['forecast', 1])
    t.equal(seen.length, 2)
  })
}

t.test('200: a structured answer', async t => {
  const Weather = z.object({ city: z.string(), sunny: z.boolean() })
  const { result } = await compareWithDirect(t, world, async to => {
    const answer = await createOpenAiClient(to).responses.parse({
      model,
      input: 'Lisbon, as an object',
      text: { format: zodTextFormat(Weather, 'weather') },
    })
    return answer.output_parsed
  })
  t.same(result, { city: 'Lisbon', sunny: true })
})

t.test('200: what only Responses know goes through untouched', async t => {
  const { seen } = await compareWithDirect(t, world, async to => {
    const response = await createOpenAiClient(to).responses.create({
      model,
      input: [
        { role: 'developer', content: '' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is on this picture?' },
            { type: 'input_image', detail: 'low', image_url: `data:image/png;base64,${pngPixel}` },
            { type: 'input_file', file_id: 'file-1' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
        { type: 'item_reference', id: 'msg_1' },
        { type: 'custom_tool_call', call_id: 'c', name: 'exec', input: 'await ls()' },
        {
          type: 'custom_tool_call_output',
          call_id: 'c',
          output: [{ type: 'input_text', text: 'notes.txt' }],
        },
      ],
      conversation: { id: 'conv_1' },
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'k',
      safety_identifier: 'u',
      reasoning: { effort: 'low' },
      truncation: 'auto',
    })
    return response.output_text
  })
  t.match(JSON.parse(seen[0]!.body.toString()), { conversation: { id: 'conv_1' } })
})

t.test('200: a call that runs in the background', async t => {
  const queued = { id: 'resp_1', object: 'response', status: 'queued', output: [] }
  const answer = respondJson(queued)
  world.provider.respondNext(answer, answer)
  const { result } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to).responses.create({ model, input: 'Take your time', background: true }),
  )
  t.equal(result.status, 'queued')
})
