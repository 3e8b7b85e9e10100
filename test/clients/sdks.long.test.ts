import t from 'tap'
import { clientSdks } from '#test/support/start/client-sdks.ts'
import {
  respondError,
  respondJson,
  respondWith,
} from '#test/support/doubles/model-provider/answers.ts'
import {
  createAnthropicClient,
  createGeminiClient,
  createOpenAiClient,
  modelNames,
} from '#test/support/doubles/model-provider/clients.ts'
import { compareWithDirect } from '#test/support/doubles/model-provider/compare.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import {
  startProxyFixture,
  type ClientTarget,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { goldenAnswers } from '#test/support/samples/golden/index.ts'

/**
 * Libraries as programs use them: with an empty vault no byte of request and answer differs from a direct call,
 * and the program gets the same. What the service does with any bytes is proved in `test/api/proxy/matrix`.
 */

// It would otherwise report what it does to a service of its makers.
process.env.LANGCHAIN_TRACING_V2 = 'false'

const world = await startProxyFixture(t)
const { provider } = world

const after = 'The forecast says sun.'

/** What a program can see of an error; Google's client names the address in its message. */
const fields =
  'name status statusCode statusText code requestID isRetryable responseBody errorDetails'
function shownError(error: unknown, { baseUrl }: ClientTarget): object {
  const given = error as Record<string, unknown>
  const headers = (given.headers ?? given.responseHeaders) as Headers | Record<string, string>
  const retryAfter =
    headers instanceof Headers ? headers.get('retry-after') : headers?.['retry-after']
  const message = String(given.message).replaceAll(baseUrl.google, '')
  return {
    ...Object.fromEntries(fields.split(' ').map(name => [name, given[name]])),
    message,
    retryAfter,
  }
}

for (const [name, sdk] of Object.entries(clientSdks)) {
  t.test(`200: ${name}: a text, a stream and a picture`, async t => {
    const { result } = await compareWithDirect(t, world, async to => ({
      text: await sdk.ask(to, 'My bicycle is orange.'),
      pieces: await sdk.stream(to, 'Tell me more.'),
      picture: await sdk.look(to),
    }))
    t.equal(result.text, defaultReply)
    t.equal(result.pieces.join(''), defaultReply)
    t.ok(result.pieces.filter(piece => piece !== '').length > 3)
    t.equal(result.picture, defaultReply)
  })

  t.test(`200: ${name}: a tool is called and answered, at once and streaming`, async t => {
    for (const stream of [false, true]) {
      const { result, seen } = await compareWithDirect(t, world, to => sdk.useTool(to, stream))
      t.match(result, [{ city: 'Lisbon' }, after])
      t.equal(seen.length, 2)
    }
  })

  if (sdk.parse) {
    t.test(`200: ${name}: a structured answer`, async t => {
      const { result } = await compareWithDirect(t, world, to => sdk.parse!(to))
      t.same(result, { city: 'Lisbon', sunny: true })
    })
  }

  t.test(`400, 429, 529: ${name}: the provider's error is the client's error`, async t => {
    for (const status of [400, 429, 529]) {
      const headers = status === 429 ? { 'retry-after': '7' } : undefined
      const refusal = respondError(sdk.family, status, headers)
      provider.respondNext(refusal, refusal)
      const { result } = await compareWithDirect(t, world, async to =>
        shownError(await sdk.ask(to, 'Hi').catch((error: unknown) => error), to),
      )
      const shown = JSON.stringify(result)
      t.match(shown, `told to answer ${status}`)
      t.match(shown, new RegExp(`"status(Code)?":${status}`))
    }
  })
}

t.test('200: each golden stream of Responses gives the client the same events', async t => {
  for (const { name, bytes, contentType } of goldenAnswers) {
    if (!/^responses\/(?:text|tools|search|refusal|incomplete)\.sse$/.test(name)) continue
    const answer = respondWith([bytes], { headers: { 'content-type': contentType } })
    provider.respondNext(answer, answer)
    const { result } = await compareWithDirect(t, world, async to => {
      const body = { model: modelNames.openai, input: 'x', stream: true as const }
      return await Array.fromAsync(await createOpenAiClient(to).responses.create(body))
    })
    t.ok(result.length > 3, name)
  }
})

t.test('200: what only some models know goes through untouched', async t => {
  const model = modelNames.openai
  const background = respondJson({ id: 'resp_1', object: 'response', status: 'queued', output: [] })
  provider.respondNext(background, background)
  const { result } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to).responses.create({
      model,
      input: [
        { role: 'developer', content: '' },
        { role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' },
        { type: 'item_reference', id: 'msg_1' },
        { type: 'custom_tool_call', call_id: 'c', name: 'exec', input: 'await ls()' },
        { type: 'custom_tool_call_output', call_id: 'c', output: 'notes.txt' },
      ],
      conversation: { id: 'conv_1' },
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'k',
      safety_identifier: 'u',
      reasoning: { effort: 'low' },
      truncation: 'auto',
      background: true,
    }),
  )
  t.equal(result.status, 'queued')
  const { seen: chat } = await compareWithDirect(t, world, to =>
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
  const sent = JSON.parse(chat[0]!.body.toString()) as object
  t.match(sent, { n: 2, store: true, metadata: { product: 'tests' } })
})

t.test('200: Anthropic: cache marks, beta features and thinking that is streamed', async t => {
  const { result, seen } = await compareWithDirect(t, world, async to => {
    const stream = createAnthropicClient(to).beta.messages.stream({
      model: modelNames.anthropic,
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
          content: [{ type: 'text', text: 'think', cache_control: { type: 'ephemeral' } }],
        },
      ],
    })
    return (await stream.finalMessage()).content
  })
  t.match(result, [{ type: 'thinking', thinking: 'A secret thought.' }, { type: 'text' }])
  t.match(findHeader(seen[0]!.headers, 'anthropic-beta'), 'files-api-2025-04-14')
  t.match(findHeader(seen[0]!.headers, 'anthropic-version'), /^\d{4}-\d\d-\d\d$/)
})

t.test('200: Google: both versions of its API', async t => {
  for (const version of ['v1', 'v1beta']) {
    const { result, seen } = await compareWithDirect(t, world, async to =>
      (await createGeminiClient(to, {}, version).generateContent('Hi')).response.text(),
    )
    t.equal(result, defaultReply)
    t.equal(seen[0]!.url, `/google/${version}/models/${modelNames.google}:generateContent`)
  }
})

t.test('200: OpenAI: the client tries again when the provider says so', async t => {
  const busy = respondError('openai', 429, { 'retry-after-ms': '20' })
  const fine = respondJson({ id: 'x', object: 'chat.completion', choices: [] })
  provider.respondNext(busy, fine, busy, fine)
  const messages = [{ role: 'user' as const, content: 'Again' }]
  const { seen } = await compareWithDirect(t, world, to =>
    createOpenAiClient(to, 1).chat.completions.create({ model: modelNames.openai, messages }),
  )
  t.same(
    seen.map(({ response }) => response.status),
    [429, 200],
  )
})
