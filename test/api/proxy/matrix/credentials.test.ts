import t from 'tap'
import { builtInNames } from '#shared/core/provider-registry.ts'
import { buildKey } from '#test/support/start/api.ts'
import {
  createAnthropicClient,
  createGeminiClient,
  modelNames,
  createOpenAiClient,
} from '#test/support/doubles/model-provider/clients.ts'
import {
  startProxyFixture,
  proxiedTarget,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import {
  callModel,
  proxyDialects,
  type ProxyDialect,
} from '#test/support/samples/proxy-dialects.ts'
import { findHeader, type RecordedRequest } from '#test/support/doubles/recording-server.ts'

/** For each dialect: every way to bring both keys, and what reaches the provider of them. */

const world = await startProxyFixture(t)
const { provider, backend, base, owner } = world
const [openai] = proxyDialects as [ProxyDialect]
const anthropic = proxyDialects.find(({ format }) => format === 'anthropic')!
const google = proxyDialects.find(({ format }) => format === 'google')!

type Asking = { headers?: Record<string, string>; query?: string; more?: object }

const ask = async (dialect: ProxyDialect, options: Asking) => {
  const response = await callModel(base, '', dialect, 'Hi', options)
  const body = (await response.json()) as { error?: object }
  return { status: response.status, body }
}

const last = () => provider.requests.at(-1)!

/** The credentials a provider saw, wherever they were. */
const credentialsOf = ({ headers, url }: RecordedRequest): string[] => [
  ...['authorization', 'x-api-key', 'x-goog-api-key'].flatMap(
    name => findHeader(headers, name)?.replace(/^bearer /i, '') ?? [],
  ),
  ...new URL(url, 'http://localhost').searchParams.getAll('key'),
]

const own = 'sk-the-clients-own'

/** Every way to bring a key of one's own; `mk` stands for the Memory Key. */
const forms: [headers: Record<string, string>, query?: string][] = [
  [{ 'x-memory-key': 'mk', authorization: `Bearer ${own}` }],
  [{ authorization: 'Bearer mk', 'x-provider-key': own }],
  [{ 'x-api-key': 'mk', 'x-provider-key': own }],
  [{ 'x-memory-key': 'mk', 'x-provider-key': own }],
]
const formsOf: Record<ProxyDialect['provider'], typeof forms> = {
  openai: forms,
  anthropic: [...forms, [{ 'x-memory-key': 'mk', 'x-api-key': own }]],
  google: [
    ...forms,
    [{ 'x-memory-key': 'mk', 'x-goog-api-key': own }],
    [{ 'x-memory-key': 'mk' }, `key=${own}`],
  ],
}

for (const dialect of proxyDialects) {
  const { format, provider: name } = dialect

  t.test(`200: ${format}: a key of the client's own, in every form`, async t => {
    const key = await buildKey(backend)
    for (const [given, query] of formsOf[name]) {
      const headers = Object.fromEntries(
        Object.entries(given).map(([header, value]) => [header, value.replace(/\bmk\b/, key)]),
      )
      const { status, body } = await ask(dialect, { headers, ...(query && { query }) })
      t.equal(status, 200, `${JSON.stringify(given)} ${JSON.stringify(body.error ?? '')}`)
      t.same(credentialsOf(last()), [own])
    }
  })

  t.test(`200: ${format}: the key of the account pays, at its own provider`, async t => {
    const headers = { authorization: `Bearer ${await world.newKey()}` }
    t.equal((await ask(dialect, { headers })).status, 200)
    t.match(last().url, new RegExp(`^/${name}/`))
    t.same(credentialsOf(last()), [providerKey(name)])
  })

  t.test(`401: ${format}: no key for the provider, a Memory Key for one, or two`, async t => {
    const [key, other] = [await buildKey(backend), await buildKey(backend)]
    const before = provider.requests.length
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-memory-key': `${key}:off` }]) {
      const answer = await ask(dialect, { headers })
      t.equal(answer.status, 401)
      t.match(answer.body, { error: { message: new RegExp(name, 'i') }, hint: String })
    }
    for (const headers of [
      { 'x-memory-key': key, authorization: `Bearer ${other}` },
      { 'x-memory-key': key, 'x-api-key': other },
      { 'x-memory-key': key, 'x-provider-key': other },
      { authorization: `Bearer ${key}`, 'x-provider-key': `${key}:read` },
      { authorization: `Bearer ${key}`, 'x-goog-api-key': other },
    ]) {
      t.equal((await ask(dialect, { headers })).status, 401, JSON.stringify(Object.keys(headers)))
    }
    t.equal(provider.requests.length, before, 'the provider is not asked')
  })
}

t.test('200: the official clients with nothing but a Memory Key for a key', async t => {
  const key = await world.newKey()
  const target = proxiedTarget(world, key)
  const { openai: model } = modelNames
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  await createOpenAiClient(target).chat.completions.create({ model, messages })
  t.same(credentialsOf(last()), [providerKey('openai')])
  const limits = { model: modelNames.anthropic, max_tokens: 10 }
  await createAnthropicClient(target).messages.create({ ...limits, messages })
  t.same(credentialsOf(last()), [providerKey('anthropic')])
  const apiKey = { ...target.apiKey, google: key }
  await createGeminiClient({ ...target, apiKey, headers: {} }).generateContent('Hi')
  t.same(credentialsOf(last()), [providerKey('google')])
})

t.test('200: a model named with its provider goes there, under its own name', async t => {
  const key = await buildKey(backend)
  const headers = { authorization: `Bearer ${key}`, 'x-provider-key': own }
  for (const name of builtInNames) {
    const { status, body } = await ask(openai, { headers, more: { model: `${name}/some-model` } })
    t.equal(status, 200, `${name} ${JSON.stringify(body.error ?? '')}`)
    t.match(last().url, new RegExp(`^/${name}/.*chat/completions$`))
    const sent = JSON.stringify({ ...openai.body('Hi'), model: 'some-model' })
    t.equal(last().body.toString(), sent, name)
    t.same(credentialsOf(last()), [own], name)
  }
  const named = { more: { model: `anthropic/${modelNames.anthropic}` } }
  t.equal((await ask(anthropic, { headers, ...named })).status, 200)
  t.equal(last().body.toString(), JSON.stringify(anthropic.body('Hi')))
  const model = encodeURIComponent(`google/${modelNames.google}`)
  const path = () => `/v1/models/${model}:generateContent`
  t.equal((await ask({ ...google, path }, { headers })).status, 200)
  t.equal(last().body.toString(), JSON.stringify(google.body('Hi')))
})

t.test('400: a model that no provider has', async t => {
  const headers = { authorization: `Bearer ${await world.newKey()}` }
  const before = provider.requests.length
  for (const model of ['nobody/knows', 'no-such-model', '', 7, null]) {
    const answer = await ask(openai, { headers, more: { model } })
    t.equal(answer.status, 400, String(model))
    t.match(answer.body, { error: { message: String } })
  }
  for (const name of ['a%2F..%2Fb', '%2e%2e']) {
    const path = () => `/v1/models/${name}:generateContent`
    t.match(String((await ask({ ...google, path }, { headers })).status), /^40[04]$/, name)
  }
  const asked = provider.requests.slice(before)
  t.notOk(
    asked.some(({ method }) => method === 'POST'),
    'no model is asked',
  )
})

t.test('200: what a client sends for us or for others does not reach the provider', async t => {
  const answer = await ask(openai, {
    headers: {
      authorization: `Bearer ${await world.newKey()}`,
      cookie: 'session=1',
      'proxy-authorization': 'Basic eA==',
      'x-forwarded-for': '10.0.0.1',
      forwarded: 'for=10.0.0.1',
      'x-real-ip': '10.0.0.1',
      'x-admin-email': 'root@example.com',
      'x-memory-mode': 'read',
      'x-session-id': 's',
      'x-embedding-model': 'local',
      'idempotency-key': crypto.randomUUID(),
      te: 'trailers',
      origin: 'https://product.example',
      referer: 'https://product.example/private',
      'openai-organization': 'org-1',
      'openai-project': 'proj-1',
      'user-agent': 'product/1.0',
    },
  })
  t.equal(answer.status, 200)
  const { headers } = last()
  const ofTheHop = new Set(
    'accept-encoding connection content-length host transfer-encoding'.split(' '),
  )
  const names = headers.map(([name]) => name.toLowerCase()).filter(name => !ofTheHop.has(name))
  t.same(names.toSorted(), [
    'accept',
    'accept-language',
    'authorization',
    'content-type',
    'openai-organization',
    'openai-project',
    'user-agent',
  ])
  t.equal(findHeader(headers, 'user-agent'), 'product/1.0')
  t.equal(findHeader(headers, 'accept-encoding') ?? 'identity', 'identity')
})

t.test("400: a key of another provider's form is not sent, nor stored", async t => {
  const key = await buildKey(backend)
  for (const [dialect, foreign, maker] of [
    [openai, 'sk-ant-api03-0123456789', 'anthropic'],
    [openai, 'AIzaSy0123456789', 'google'],
    [anthropic, 'sk-or-v1-0123456789', 'openrouter'],
    [google, 'gsk_0123456789', 'groq'],
  ] as const) {
    const { provider: name } = dialect
    const before = provider.requests.length
    const headers = { 'x-memory-key': key, 'x-provider-key': foreign }
    const refused = await ask(dialect, { headers })
    t.equal(refused.status, 400, `${foreign} to ${name}`)
    const message = new RegExp(`one of ${maker}, and the request is for ${name}`)
    t.match(refused.body, { error: { message } })
    t.notMatch(JSON.stringify(refused.body), foreign)
    t.equal(provider.requests.length, before, 'the provider has heard nothing')
    const path = `/v1/account/provider-keys/${name}`
    t.equal((await owner.send('PUT', path, { body: { key: foreign } })).status, 400)
  }
})
