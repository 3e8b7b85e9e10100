import t from 'tap'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { clientSdks, type ClientSdk } from '#test/support/start/client-sdks.ts'
import {
  createAnthropicClient,
  createOpenAiClient,
} from '#test/support/doubles/model-provider/clients.ts'
import type { ClientTarget } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { setBalance } from '#test/support/checks/alter.ts'

/** What a person reads in the error of an SDK: what is wrong, and what to change. */

process.env.LANGCHAIN_TRACING_V2 = 'false'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)
const poorKey = await buildKey(backend)
const { account } = await resolveCaller(backend, poorKey)
await setBalance(backend, { account }, 0)

type Call = { headers: Record<string, string>; apiKey: string }

const own = { 'X-Memory-Key': key }
const unknownKey = `mk_${'a'.repeat(32)}`

/** For each error: how it is caused, and the words that must be seen. */
const errors: Record<string, { call: Partial<Call>; says: RegExp[] }> = {
  'no provider key': {
    call: { apiKey: key },
    says: [/No provider key for/, /X-Provider-Key/],
  },
  'a Memory Key that is none': {
    call: { headers: { 'X-Memory-Key': unknownKey } },
    says: [/Memory Key/],
  },
  'no Memory Key': {
    call: { headers: {} },
    says: [/No Memory Key in the request/, /X-Memory-Key/],
  },
  'a Memory Key as provider key': {
    call: { headers: { ...own, 'X-Provider-Key': key } },
    says: [/X-Provider-Key holds a Memory Key/, /takes the key of the model provider/],
  },
  'a balance that is used up': {
    call: { headers: { 'X-Memory-Key': poorKey } },
    says: [/balance/],
  },
  'a switch that does not exist': {
    call: { headers: { ...own, 'X-Memory-Mode': 'perhaps' } },
    says: [/X-Memory-Mode must be one of on, off, read, write/, /Leave it out/],
  },
  'a lifetime that is none': {
    call: { headers: { ...own, 'X-Memory-TTL': 'soon' } },
    says: [/X-Memory-TTL must be a whole number/, /Leave it out/],
  },
  'a session that is too long': {
    call: { headers: { ...own, 'X-Session-ID': 'x'.repeat(300) } },
    says: [/at most 256 characters/],
  },
  'an embedding model that does not exist': {
    call: { headers: { ...own, 'X-Embedding-Model': 'nobody/none' } },
    says: [/embedding/i],
  },
}

/** The service, for a client of any family. */
function targetOf({ headers, apiKey }: Call): ClientTarget {
  const ofAll = <Value>(value: Value) => ({ openai: value, anthropic: value, google: value })
  const baseUrl = { openai: `${base}/v1`, anthropic: base, google: base }
  return { baseUrl, apiKey: ofAll(apiKey), headers: ofAll(headers), fetch }
}

/** The message of the error that a program gets. */
const shown = async (asking: Promise<unknown>): Promise<string> => {
  const failed = (error: unknown) => (error as Error).message
  return asking.then(() => 'no error', failed)
}

const ask = (sdk: ClientSdk, call: Partial<Call>): Promise<string> =>
  shown(sdk.ask(targetOf({ headers: own, apiKey: 'sk-1', ...call }), 'What is my cat called?'))

for (const [name, sdk] of Object.entries(clientSdks)) {
  t.test(`${name}: nine errors say what is wrong and what to change`, async t => {
    for (const [what, { call, says }] of Object.entries(errors)) {
      const message = await ask(sdk, call)
      for (const words of says) t.match(message, words, `${what}: ${message}`)
      t.notMatch(message, /undefined|\[object Object\]|no error/, what)
      t.notMatch(message, key, 'no key is repeated')
    }
  })
}

t.test('a model of another maker: the error names the path for it', async t => {
  const target = targetOf({ headers: own, apiKey: 'sk-1' })
  const model = 'mistral/mistral-large'
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  const path = /mistral does not speak this format.*\/v1\/chat\/completions/s
  const { responses } = createOpenAiClient(target)
  t.match(await shown(responses.create({ model, input: 'Hi' })), path)
  const anthropic = createAnthropicClient(target)
  const message = await shown(anthropic.messages.create({ model, max_tokens: 9, messages }))
  t.match(message, path)
  t.match(message, '/v1/messages is for anthropic')
})

t.test('a provider that is away says so, and what to do', async t => {
  await provider.goDown()
  for (const [name, sdk] of Object.entries(clientSdks)) {
    const message = await ask(sdk, {})
    t.match(
      message,
      new RegExp(`${sdk.family} is out of reach.*try again`, 's'),
      `${name}: ${message}`,
    )
  }
  await provider.comeUp()
})

t.test('the shape is the family’s, with the hint beside it', async t => {
  const refused = async (path: string, more: Record<string, string> = {}) => {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: { 'x-memory-key': key, 'content-type': 'application/json', ...more },
      body: '{',
    })
    return (await response.json()) as Record<string, unknown>
  }
  const message = /^The body is not valid JSON\. Check quotes/
  const hint = 'Check quotes, commas and encoding'
  const openai = { error: { message, type: 'invalid_request_error', param: null }, hint }
  t.match(await refused('/v1/chat/completions'), openai)
  t.match(await refused('/v1/responses'), openai)
  t.match(await refused('/v1/embeddings'), openai)
  const anthropic = { type: 'error', error: { type: 'invalid_request_error', message }, hint }
  t.match(await refused('/v1/messages'), { ...anthropic, request_id: String })
  const google = { error: { code: 400, message, status: 'INVALID_ARGUMENT' }, hint }
  t.match(await refused('/v1beta/models/gemini-x:generateContent'), google)
  t.same(await refused('/v1/memory/search'), { error: 'The body is not valid JSON', hint })
})
