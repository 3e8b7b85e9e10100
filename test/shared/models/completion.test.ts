import t from 'tap'
import { openCompletionModel } from '#shared/models/completion.ts'
import type { BuiltInName } from '#shared/core/provider-registry.ts'
import { providersOf } from '#test/support/start/providers.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'

const model = await startTeamModel(t)
const never = new AbortController().signal

const schema = {
  type: 'object',
  required: ['facts'],
  additionalProperties: false,
  properties: {
    facts: {
      type: 'array',
      items: {
        type: 'object',
        required: ['text'],
        additionalProperties: false,
        properties: { text: { type: 'string' } },
      },
    },
  },
}
const question = { instructions: 'Find facts.', userPrompt: '{"turns":[]}', schema }

const open = (provider: BuiltInName, baseUrl = model.origin) =>
  openCompletionModel({
    provider: providersOf({ [`${provider.toUpperCase()}_BASE_URL`]: baseUrl }).get(provider)!,
    name: 'some-model',
    apiKey: 'sk-0123456789',
  })

t.beforeEach(() => {
  model.calls.length = 0
})

t.test('an OpenAI-compatible model is held to the schema', async t => {
  t.same(await open('openai', `${model.origin}/v1`).complete(question, never), {
    text: '{"facts":[]}',
    isComplete: true,
    inputTokens: 100,
    cachedTokens: 40,
    outputTokens: 20,
  })
  t.match(model.calls, [
    {
      path: '/v1/chat/completions',
      key: 'sk-0123456789',
      model: 'some-model',
      instructions: 'Find facts.',
      body: { response_format: { type: 'json_schema', json_schema: { strict: true, schema } } },
    },
  ])
})

t.test('one without schemas is asked for JSON, and then in words', async t => {
  const refusal = { status: 400, message: 'response_format is not supported' }
  model.scriptAnswers('extract', refusal, refusal, '```json\n{"facts":[]}\n```')
  const { text } = await open('mistral', `${model.origin}/v1`).complete(question, never)
  t.equal(text, '```json\n{"facts":[]}\n```')
  const formats = model.calls.map(({ body }) => body.response_format?.type)
  t.same(formats, ['json_schema', 'json_object', undefined])
})

t.test('Claude answers as the input of a tool it has to call', async t => {
  const { text, inputTokens, cachedTokens } = await open('anthropic').complete(question, never)
  t.same(JSON.parse(text), { facts: [] })
  t.same([inputTokens, cachedTokens], [100, 40], 'what was read from a cache is part of the input')
  t.match(model.calls, [
    {
      dialect: 'anthropic',
      key: 'sk-0123456789',
      body: { tool_choice: { type: 'tool', name: 'answer' }, tools: [{ input_schema: schema }] },
    },
  ])
  model.scriptAnswers('extract', 'I would rather talk.')
  t.equal((await open('anthropic').complete(question, never)).text, 'I would rather talk.')
})

t.test('Gemini is held to the schema, without the keywords it does not know', async t => {
  const { text, outputTokens } = await open('google').complete(question, never)
  t.same(JSON.parse(text), { facts: [] })
  t.equal(outputTokens, 20)
  const { body, key, model: name } = model.calls[0]!
  t.same([key, name], ['sk-0123456789', 'some-model'])
  const { responseSchema, responseMimeType } = body.generationConfig
  t.equal(responseMimeType, 'application/json')
  t.match(responseSchema, { properties: { facts: { items: { required: ['text'] } } } })
  t.notMatch(JSON.stringify(responseSchema), /additionalProperties/)
})

const bases: [BuiltInName, string][] = [
  ['openai', `${model.origin}/v1`],
  ['anthropic', model.origin],
  ['google', model.origin],
]
for (const [provider, base] of bases) {
  t.test(`upstream: ${provider} refuses, and nothing of its message goes on`, async t => {
    for (const status of [401, 403, 404, 422]) {
      model.scriptAnswers('extract', { status, message: 'the secret was Ada earns 100' })
      const refusal = await open(provider, base)
        .complete(question, never)
        .then(
          () => new Error('answered'),
          (error: Error) => error,
        )
      t.match(refusal, { reason: 'upstream', message: new RegExp(`status ${status}`) })
      t.notMatch(refusal.message, /secret/)
    }
  })

  t.test(`${provider}: a call is cancelled when its client is gone`, async t => {
    const gone = new AbortController()
    // It is asked, and answers only when the call has ended.
    const { promise: late, resolve } = Promise.withResolvers<string>()
    model.scriptAnswers('extract', () => {
      gone.abort()
      return late
    })
    await t.rejects(open(provider, base).complete(question, gone.signal), { name: 'AbortError' })
    resolve('{}')
  })

  t.test(`${provider}: an answer that was cut off is known as that`, async t => {
    const text = '{"facts":[{"text":"The floor is"}]}'
    model.scriptAnswers('extract', { text, cut: true }, text)
    const answer = async () => (await open(provider, base).complete(question, never)).isComplete
    t.same([await answer(), await answer()], [false, true])
  })
}

t.test('upstream: no server at the address', async t => {
  const answering = open('openai', 'http://127.0.0.1:9/v1').complete(question, never)
  await t.rejects(answering, { reason: 'upstream', message: 'openai/some-model did not answer' })
})
