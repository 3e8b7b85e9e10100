import t from 'tap'
import { openAnsweringModel } from '#shared/models/completion.ts'
import type { ProviderName } from '#shared/core/provider-registry.ts'
import { teamModel } from '#test/support/team-model.ts'

const model = await teamModel(t)
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
const question = { instructions: 'Find facts.', material: '{"turns":[]}', schema }

const open = (provider: ProviderName, baseUrl = model.origin) =>
  openAnsweringModel({ provider, name: 'some-model', apiKey: 'sk-0123456789', baseUrl })

t.beforeEach(() => {
  model.calls.length = 0
})

t.test('an OpenAI-compatible model is held to the schema', async t => {
  t.same(await open('openai', `${model.origin}/v1`).answer(question, never), {
    text: '{"facts":[]}',
    whole: true,
    inputTokens: 100,
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

t.test('one that knows no schemas is asked for JSON, and then in words', async t => {
  const refusal = { status: 400, message: 'response_format is not supported' }
  model.say('extract', refusal, refusal, '```json\n{"facts":[]}\n```')
  const { text } = await open('mistral', `${model.origin}/v1`).answer(question, never)
  t.equal(text, '```json\n{"facts":[]}\n```')
  t.same(
    model.calls.map(({ body }) => body.response_format?.type),
    ['json_schema', 'json_object', undefined],
  )
})

t.test('Claude answers as the input of a tool it has to call', async t => {
  const { text, inputTokens } = await open('anthropic').answer(question, never)
  t.same(JSON.parse(text), { facts: [] })
  t.equal(inputTokens, 100)
  t.match(model.calls, [
    {
      dialect: 'anthropic',
      key: 'sk-0123456789',
      body: { tool_choice: { type: 'tool', name: 'answer' }, tools: [{ input_schema: schema }] },
    },
  ])
  model.say('extract', 'I would rather talk.')
  t.equal((await open('anthropic').answer(question, never)).text, 'I would rather talk.')
})

t.test('Gemini is held to the schema, without the keywords it does not know', async t => {
  const { text, outputTokens } = await open('google').answer(question, never)
  t.same(JSON.parse(text), { facts: [] })
  t.equal(outputTokens, 20)
  const { body, key, model: name } = model.calls[0]!
  t.same([key, name], ['sk-0123456789', 'some-model'])
  const { responseSchema, responseMimeType } = body.generationConfig
  t.equal(responseMimeType, 'application/json')
  t.match(responseSchema, { properties: { facts: { items: { required: ['text'] } } } })
  t.notMatch(JSON.stringify(responseSchema), /additionalProperties/)
})

const bases: [ProviderName, string][] = [
  ['openai', `${model.origin}/v1`],
  ['anthropic', model.origin],
  ['google', model.origin],
]
for (const [provider, base] of bases) {
  t.test(`upstream: ${provider} refuses, and nothing of its message goes on`, async t => {
    for (const status of [401, 403, 404, 422]) {
      model.say('extract', { status, message: 'the secret was Ada earns 100' })
      const refusal = await open(provider, base)
        .answer(question, never)
        .then(
          () => new Error('answered'),
          (error: Error) => error,
        )
      t.match(refusal, { reason: 'upstream', message: new RegExp(`status ${status}`) })
      t.notMatch(refusal.message, /secret/)
    }
  })

  t.test(`${provider}: a call is given up when nobody waits for it`, async t => {
    const gone = new AbortController()
    model.say('extract', () => new Promise<string>(resolve => setTimeout(resolve, 2_000, '{}')))
    const answering = open(provider, base).answer(question, gone.signal)
    setTimeout(() => gone.abort(), 50)
    const began = performance.now()
    await t.rejects(answering, { name: 'AbortError' })
    t.ok(performance.now() - began < 1_500)
  })
}

for (const [provider, base] of bases) {
  t.test(`${provider}: an answer that was cut off is known as that`, async t => {
    const text = '{"facts":[{"text":"The floor is"}]}'
    model.say('extract', { text, cut: true }, text)
    const answer = async () => (await open(provider, base).answer(question, never)).whole
    t.same([await answer(), await answer()], [false, true])
  })
}

t.test('upstream: nobody is there', async t => {
  const answering = open('openai', 'http://127.0.0.1:9/v1').answer(question, never)
  await t.rejects(answering, { reason: 'upstream', message: 'openai/some-model did not answer' })
})
