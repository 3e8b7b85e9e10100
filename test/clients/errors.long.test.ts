import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenerativeAI } from '@google/generative-ai'
import { ChatAnthropic } from '@langchain/anthropic'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI } from '@langchain/openai'
import { generateText } from 'ai'
import OpenAI from 'openai'
import t from 'tap'
import { buildKey, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'
import { startModelProvider } from '#test/support/model-provider.ts'
import { setBalance } from '#test/support/alter.ts'

/** What a person reads in the error of an SDK: what is wrong, and what to change. */

process.env.LANGCHAIN_TRACING_V2 = 'false'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)
const poorKey = await buildKey(backend)
const { account } = await resolveCaller(backend, poorKey)
await setBalance(backend, { account }, 0)

type Call = { headers: Record<string, string>; apiKey: string; model: string }
type Family = 'openai' | 'anthropic' | 'google'

const prompt = 'What is my cat called?'
const messages = [{ role: 'user' as const, content: prompt }]
const atOpenai = `${base}/v1`

const sdks: Record<string, [family: Family, call: (call: Call) => Promise<unknown>]> = {
  openai: [
    'openai',
    ({ headers, apiKey, model }) =>
      new OpenAI({
        baseURL: atOpenai,
        apiKey,
        defaultHeaders: headers,
        maxRetries: 0,
      }).chat.completions.create({ model, messages }),
  ],
  'openai, responses': [
    'openai',
    ({ headers, apiKey, model }) =>
      new OpenAI({
        baseURL: atOpenai,
        apiKey,
        defaultHeaders: headers,
        maxRetries: 0,
      }).responses.create({
        model,
        input: prompt,
      }),
  ],
  anthropic: [
    'anthropic',
    ({ headers, apiKey, model }) =>
      new Anthropic({
        baseURL: base,
        apiKey,
        defaultHeaders: headers,
        maxRetries: 0,
      }).messages.create({
        model,
        max_tokens: 9,
        messages,
      }),
  ],
  google: [
    'google',
    ({ headers, apiKey, model }) =>
      new GoogleGenerativeAI(apiKey)
        .getGenerativeModel({ model }, { baseUrl: base, customHeaders: headers })
        .generateContent(prompt),
  ],
  'ai, openai': [
    'openai',
    ({ headers, apiKey, model }) =>
      generateText({
        model: createOpenAI({ baseURL: atOpenai, apiKey, headers })(model),
        prompt,
        maxRetries: 0,
      }),
  ],
  'ai, anthropic': [
    'anthropic',
    ({ headers, apiKey, model }) =>
      generateText({
        model: createAnthropic({ baseURL: atOpenai, apiKey, headers })(model),
        prompt,
        maxRetries: 0,
      }),
  ],
  'ai, google': [
    'google',
    ({ headers, apiKey, model }) =>
      generateText({
        model: createGoogleGenerativeAI({ baseURL: `${base}/v1beta`, apiKey, headers })(model),
        prompt,
        maxRetries: 0,
      }),
  ],
  'langchain, openai': [
    'openai',
    ({ headers, apiKey, model }) =>
      new ChatOpenAI({
        model,
        apiKey,
        maxRetries: 0,
        configuration: { baseURL: atOpenai, defaultHeaders: headers },
      }).invoke(prompt),
  ],
  'langchain, anthropic': [
    'anthropic',
    ({ headers, apiKey, model }) =>
      new ChatAnthropic({
        model,
        apiKey,
        anthropicApiUrl: base,
        maxRetries: 0,
        clientOptions: { defaultHeaders: headers },
      }).invoke(prompt),
  ],
  'langchain, google': [
    'google',
    ({ headers, apiKey, model }) =>
      new ChatGoogleGenerativeAI({
        model,
        apiKey,
        baseUrl: base,
        maxRetries: 0,
        customHeaders: headers,
      }).invoke(prompt),
  ],
}

const models: Record<Family, string> = {
  openai: 'gpt-5',
  anthropic: 'claude-sonnet-5',
  google: 'gemini-2.5-flash',
}

const own = { 'X-Memory-Key': key }
const unknownKey = `mk_${'a'.repeat(32)}`

/** Of each error: how it is caused, and the words that must be seen. */
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
  'a model of another maker': {
    call: { model: 'mistral/mistral-large' },
    says: [/./],
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

const otherMaker: Record<string, RegExp> = {
  anthropic:
    /mistral does not speak this format.*\/v1\/messages is for anthropic.*\/v1\/chat\/completions/s,
  'openai, responses': /mistral does not speak this format.*\/v1\/chat\/completions/s,
  'ai, openai': /mistral does not speak this format.*\/v1\/chat\/completions/s,
}

async function shown(run: (call: Call) => Promise<unknown>, call: Call): Promise<string> {
  try {
    await run(call)
    return 'no error'
  } catch (error) {
    return (error as Error).message
  }
}

for (const [sdk, [family, run]] of Object.entries(sdks)) {
  t.test(`${sdk}: ten errors say what is wrong and what to change`, async t => {
    for (const [name, { call, says }] of Object.entries(errors)) {
      const asked = { headers: own, apiKey: 'sk-1', model: models[family], ...call }
      if (name === 'a model of another maker' && !otherMaker[sdk]) continue
      const message = await shown(run, asked)
      for (const words of otherMaker[sdk] && call.model ? [otherMaker[sdk]] : says) {
        t.match(message, words, `${name}: ${message}`)
      }
      t.notMatch(message, /undefined|\[object Object\]|no error/, name)
      t.notMatch(message, key, 'no key is repeated')
    }
  })
}

t.test('a provider that is away says so, and what to do', async t => {
  await provider.goDown()
  for (const [sdk, [family, run]] of Object.entries(sdks)) {
    const message = await shown(run, { headers: own, apiKey: 'sk-1', model: models[family] })
    t.match(message, new RegExp(`${family} is out of reach.*try again`, 's'), `${sdk}: ${message}`)
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
