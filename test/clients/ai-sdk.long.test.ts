import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import {
  APICallError,
  generateText,
  Output,
  stepCountIs,
  streamText,
  tool,
  type LanguageModel,
} from 'ai'
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

const world = await startProxyFixture(t)

// The Vercel AI SDK.
const models: Record<FamilyName, (to: ClientTarget) => LanguageModel> = {
  openai: ({ baseUrl, apiKey, fetch }) =>
    createOpenAI({ baseURL: baseUrl.openai, apiKey: apiKey.openai, fetch }).chat('gpt-4o-mini'),
  anthropic: ({ baseUrl, apiKey, fetch }) =>
    createAnthropic({ baseURL: `${baseUrl.anthropic}/v1`, apiKey: apiKey.anthropic, fetch })(
      'claude-sonnet-5',
    ),
  google: ({ baseUrl, apiKey, headers, fetch }) =>
    createGoogleGenerativeAI({
      baseURL: `${baseUrl.google}/v1beta`,
      apiKey: apiKey.google,
      headers: headers.google ?? {},
      fetch,
    })('gemini-2.5-flash'),
}

const system = 'You are terse.'
const forecast = tool({
  description: 'The weather to come',
  inputSchema: z.object({ city: z.string(), days: z.number().optional() }),
  execute: ({ city }) => ({ city, sky: 'clear' }),
})

for (const family of ['openai', 'anthropic', 'google'] as const) {
  const modelOf = models[family]

  t.test(`200: ${family}: text, at once and streaming`, async t => {
    const { result } = await compareWithDirect(t, world, async to => {
      const asked = { model: modelOf(to), system, prompt: 'My bicycle is orange.', maxRetries: 0 }
      const { text, finishReason, usage } = await generateText(asked)
      const parts = await Array.fromAsync(streamText(asked).textStream)
      return { text, finishReason, usage, parts }
    })
    t.match(result.text, 'Crème brûlée, 東京 and a 🦊')
    t.equal(result.parts.join(''), result.text)
    t.ok(result.parts.length > 5)
  })

  t.test(`200: ${family}: tools are called and answered`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const asked = {
        model: modelOf(to),
        prompt: 'What will the weather be?',
        tools: { forecast },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
      }
      const { text, steps } = await generateText(asked)
      const streamed = streamText(asked)
      return {
        text,
        results: steps[0]!.toolResults.map(({ output }) => output),
        streamed: await streamed.text,
      }
    })
    t.match(result, { text: 'The forecast says sun.', results: [{ city: 'Lisbon', sky: 'clear' }] })
    t.equal(result.streamed, result.text)
    t.equal(seen.length, 4)
  })

  t.test(`200: ${family}: a structured answer and a picture`, async t => {
    const { result } = await compareWithDirect(t, world, async to => {
      const { output } = await generateText({
        model: modelOf(to),
        maxRetries: 0,
        output: Output.object({ schema: z.object({ city: z.string(), sunny: z.boolean() }) }),
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'The city on this picture, as an object' },
              { type: 'file', data: Buffer.from(pngPixel, 'base64'), mediaType: 'image/png' },
            ],
          },
        ],
      })
      return output
    })
    t.same(result, { city: 'Lisbon', sunny: true })
  })

  for (const status of [400, 429, 529]) {
    t.test(`${status}: ${family}: the provider's error is the client's error`, async t => {
      const refusal = respondError(family, status, status === 429 ? { 'retry-after': '3' } : {})
      world.provider.respondNext(refusal, refusal)
      const { result } = await compareWithDirect(t, world, async to => {
        const error = await generateText({ model: modelOf(to), prompt: 'Hi', maxRetries: 0 }).then(
          () => null,
          (error: unknown) => error,
        )
        if (!APICallError.isInstance(error)) throw new Error('no error')
        const { statusCode, message, isRetryable, responseBody, responseHeaders } = error
        const after = responseHeaders?.['retry-after']
        return { statusCode, message, isRetryable, responseBody, after }
      })
      t.match(result, { statusCode: status, message: `told to answer ${status}` })
      t.equal(result.isRetryable, status !== 400)
      t.equal(result.after, status === 429 ? '3' : undefined)
    })
  }
}
