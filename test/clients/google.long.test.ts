import {
  FunctionCallingMode,
  GoogleGenerativeAIFetchError,
  SchemaType,
  type GenerativeModel,
} from '@google/generative-ai'
import t from 'tap'
import { respondError } from '#test/support/model-provider/answers.ts'
import { compareWithDirect } from '#test/support/model-provider/compare.ts'
import { pngPixel } from '#test/support/model-provider/fixtures.ts'
import { createGeminiClient } from '#test/support/model-provider/clients.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'

const world = await startProxyFixture(t)

for (const version of ['v1', 'v1beta']) {
  t.test(`200: a chat, ${version}`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const model = createGeminiClient(to, { systemInstruction: 'You are terse.' }, version)
      return (await model.generateContent('My bicycle is orange.')).response.text()
    })
    t.match(result, 'Crème brûlée, 東京 and a 🦊')
    t.equal(seen[0]!.url, `/google/${version}/models/gemini-2.5-flash:generateContent`)
  })
}

t.test('200: a stream, chunk by chunk', async t => {
  const { result, seen } = await compareWithDirect(t, world, async to => {
    const { stream, response } = await createGeminiClient(to).generateContentStream('Tell me more.')
    const texts = (await Array.fromAsync(stream)).map(chunk => chunk.text())
    return { texts, usage: (await response).usageMetadata }
  })
  t.ok(result.texts.length > 5)
  t.match(result.usage, { promptTokenCount: 21, candidatesTokenCount: 9 })
  t.match(seen[0]!.url, ':streamGenerateContent?alt=sse')
})

const forecast = {
  functionDeclarations: [
    {
      name: 'forecast',
      description: 'The weather to come',
      parameters: {
        type: SchemaType.OBJECT as const,
        properties: { city: { type: SchemaType.STRING as const } },
        required: ['city'],
      },
    },
  ],
}

for (const streaming of [false, true]) {
  t.test(`200: a function is called and answered${streaming ? ', streaming' : ''}`, async t => {
    const { result, seen } = await compareWithDirect(t, world, async to => {
      const chat = createGeminiClient(to, {
        tools: [forecast],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingMode.AUTO } },
      }).startChat()
      const say = async (message: Parameters<typeof chat.sendMessage>[0]) =>
        streaming
          ? await (
              await chat.sendMessageStream(message)
            ).response
          : (await chat.sendMessage(message)).response
      const asks = (await say('What will the weather be?')).functionCalls()
      const answered = await say([
        { functionResponse: { name: 'forecast', response: { sky: 'clear' } } },
      ])
      return [asks, answered.text()]
    })
    t.match(result, [[{ name: 'forecast', args: { city: 'Lisbon' } }], 'The forecast says sun.'])
    t.equal(seen.length, 2)
  })
}

t.test('200: a structured answer', async t => {
  const { result } = await compareWithDirect(t, world, async to => {
    const model = createGeminiClient(to, {
      generationConfig: {
        responseMimeType: 'application/json',
        responseSchema: {
          type: SchemaType.OBJECT,
          properties: { city: { type: SchemaType.STRING }, sunny: { type: SchemaType.BOOLEAN } },
        },
      },
    })
    return JSON.parse(
      (await model.generateContent('Lisbon, as an object')).response.text(),
    ) as object
  })
  t.same(result, { city: 'Lisbon', sunny: true })
})

t.test('200: a picture beside the words', async t => {
  const { result } = await compareWithDirect(t, world, async to => {
    const parts = ['What is it?', { inlineData: { mimeType: 'image/png', data: pngPixel } }]
    return (await createGeminiClient(to).generateContent(parts)).response.text()
  })
  t.match(result, 'Noted')
})

const asks: [string, (model: GenerativeModel) => Promise<unknown>][] = [
  ['generateContent', model => model.generateContent('Hi')],
  ['streamGenerateContent', model => model.generateContentStream('Hi')],
]

for (const status of [400, 403, 429, 503, 529]) {
  t.test(`${status}: the provider's error is the client's error`, async t => {
    for (const [name, ask] of asks) {
      const refusal = respondError('google', status, status === 429 ? { 'retry-after': '3' } : {})
      world.provider.respondNext(refusal, refusal)
      const { result, recorded } = await compareWithDirect(t, world, async to => {
        const error = await ask(createGeminiClient(to)).then(
          () => null,
          (error: unknown) => error,
        )
        if (!(error instanceof GoogleGenerativeAIFetchError)) throw new Error('no error')
        return { status: error.status, statusText: error.statusText, details: error.errorDetails }
      })
      t.equal(result.status, status, name)
      if (status === 429) t.equal(recorded[0]!.headers.get('retry-after'), '3')
    }
  })
}
