import t from 'tap'
import { providerNames } from '#shared/core/provider-registry.ts'
import { buildKey } from '#test/support/api.ts'
import {
  createAnthropicClient,
  createGeminiClient,
  modelNames,
  createOpenAiClient,
} from '#test/support/model-provider/clients.ts'
import {
  startProxyFixture,
  proxiedTarget,
  type FamilyName,
} from '#test/support/model-provider/proxy-fixture.ts'
import { providerKey } from '#test/support/model-provider.ts'
import { findHeader, type RecordedRequest } from '#test/support/recording-server.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world

const requests: Record<FamilyName, { path: string; body: object }> = {
  openai: {
    path: '/v1/chat/completions',
    body: { model: modelNames.openai, messages: [{ role: 'user', content: 'Hi' }] },
  },
  anthropic: {
    path: '/v1/messages',
    body: {
      model: modelNames.anthropic,
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
    },
  },
  google: {
    path: `/v1beta/models/${modelNames.google}:generateContent`,
    body: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
  },
}

const ask = async (path: string, body: object, headers: Record<string, string>) => {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as { error?: object } }
}

/** The credentials a provider saw, wherever they were. */
const credentialsOf = ({ headers, url }: RecordedRequest): string[] => [
  ...['authorization', 'x-api-key', 'x-goog-api-key'].flatMap(
    name => findHeader(headers, name)?.replace(/^bearer /i, '') ?? [],
  ),
  ...new URL(url, 'http://localhost').searchParams.getAll('key'),
]

const own = 'sk-the-clients-own'

/** Every way to bring a key of one's own; `mk` stands for the Memory Key. */
const forms: [how: string, headers: Record<string, string>, query?: string][] = [
  ['X-Memory-Key + Authorization', { 'x-memory-key': 'mk', authorization: `Bearer ${own}` }],
  ['Authorization + X-Provider-Key', { authorization: 'Bearer mk', 'x-provider-key': own }],
  ['x-api-key + X-Provider-Key', { 'x-api-key': 'mk', 'x-provider-key': own }],
  ['X-Memory-Key + X-Provider-Key', { 'x-memory-key': 'mk', 'x-provider-key': own }],
]
const ofFamily: Partial<Record<FamilyName, typeof forms>> = {
  anthropic: [['X-Memory-Key + x-api-key', { 'x-memory-key': 'mk', 'x-api-key': own }]],
  google: [
    ['X-Memory-Key + x-goog-api-key', { 'x-memory-key': 'mk', 'x-goog-api-key': own }],
    ['X-Memory-Key + ?key=', { 'x-memory-key': 'mk' }, `key=${own}`],
  ],
}

for (const [family, { path, body }] of Object.entries(requests)) {
  t.test(`200: ${family}: a key of the client's own, in every form`, async t => {
    const key = await buildKey(backend)
    for (const [how, headers, query] of [...forms, ...(ofFamily[family as FamilyName] ?? [])]) {
      const filled = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value.replace(/\bmk\b/, key)]),
      )
      const answer = await ask(path + (query ? `?${query}` : ''), body, filled)
      t.equal(answer.status, 200, `${how} ${JSON.stringify(answer.body.error ?? '')}`)
      t.same(credentialsOf(provider.requests.at(-1)!), [own], how)
    }
  })

  t.test(`401: ${family}: no key for the provider anywhere`, async t => {
    const key = await buildKey(backend)
    const before = provider.requests.length
    for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-memory-key': `${key}:off` }]) {
      const answer = await ask(path, body, headers)
      t.equal(answer.status, 401)
      t.match(answer.body, { error: { message: new RegExp(family, 'i') }, hint: String })
    }
    t.equal(provider.requests.length, before, 'the provider is not asked')
  })

  t.test(`401: ${family}: a Memory Key is no provider key, and two are one too many`, async t => {
    const [key, other] = [await buildKey(backend), await buildKey(backend)]
    const before = provider.requests.length
    const tries = [
      { 'x-memory-key': key, authorization: `Bearer ${other}` },
      { 'x-memory-key': key, 'x-api-key': other },
      { 'x-memory-key': key, 'x-provider-key': other },
      { authorization: `Bearer ${key}`, 'x-provider-key': `${key}:read` },
      { authorization: `Bearer ${key}`, 'x-goog-api-key': other },
    ]
    for (const headers of tries) {
      const { status } = await ask(path, body, headers)
      t.equal(status, 401, JSON.stringify(Object.keys(headers)))
    }
    t.equal(provider.requests.length, before, 'the provider is not asked')
  })
}

t.test('200: the keys of the account pay, each at its own provider', async t => {
  const key = await world.newKey()
  for (const [family, { path, body }] of Object.entries(requests)) {
    const answer = await ask(path, body, { authorization: `Bearer ${key}` })
    t.equal(answer.status, 200, JSON.stringify(answer.body.error ?? ''))
    t.match(provider.requests.at(-1)!.url, new RegExp(`^/${family}/`))
    t.same(credentialsOf(provider.requests.at(-1)!), [providerKey(family as FamilyName)])
  }
})

t.test('200: the official clients with nothing but a Memory Key for a key', async t => {
  const key = await world.newKey()
  const target = proxiedTarget(world, key)
  const { openai, anthropic } = requests
  await createOpenAiClient(target).chat.completions.create(openai.body as never)
  t.same(credentialsOf(provider.requests.at(-1)!), [providerKey('openai')])
  await createAnthropicClient(target).messages.create(anthropic.body as never)
  t.same(credentialsOf(provider.requests.at(-1)!), [providerKey('anthropic')])
  await createGeminiClient({
    ...target,
    apiKey: { ...target.apiKey, google: key },
    headers: {},
  }).generateContent('Hi')
  t.same(credentialsOf(provider.requests.at(-1)!), [providerKey('google')])
})

t.test('200: a model named with its provider goes there, under its own name', async t => {
  const key = await buildKey(backend)
  for (const name of providerNames) {
    const body = { ...requests.openai.body, model: `${name}/some-model` }
    const answer = await ask('/v1/chat/completions', body, {
      authorization: `Bearer ${key}`,
      'x-provider-key': own,
    })
    t.equal(answer.status, 200, `${name} ${JSON.stringify(answer.body.error ?? '')}`)
    const seen = provider.requests.at(-1)!
    t.match(seen.url, new RegExp(`^/${name}/.*chat/completions$`))
    t.equal(seen.body.toString(), JSON.stringify({ ...body, model: 'some-model' }), name)
    t.same(credentialsOf(seen), [own], name)
  }
  for (const [family, model] of [
    ['anthropic', `anthropic/${modelNames.anthropic}`],
    ['google', `google/${modelNames.google}`],
  ] as const) {
    const { body } = requests[family]
    const path =
      family === 'google'
        ? `/v1/models/${encodeURIComponent(model)}:generateContent`
        : requests[family].path
    const asked = family === 'google' ? body : { ...body, model }
    const answer = await ask(path, asked, {
      authorization: `Bearer ${key}`,
      'x-provider-key': own,
    })
    t.equal(answer.status, 200, `${family} ${JSON.stringify(answer.body.error ?? '')}`)
    t.equal(provider.requests.at(-1)!.body.toString(), JSON.stringify(body), family)
  }
})

t.test('400: a model that no provider has', async t => {
  const key = await world.newKey()
  const before = provider.requests.length
  for (const model of ['nobody/knows', 'no-such-model', '', 7, null]) {
    const answer = await ask(
      '/v1/chat/completions',
      { ...requests.openai.body, model },
      { authorization: `Bearer ${key}` },
    )
    t.equal(answer.status, 400, String(model))
    t.match(answer.body, { error: { message: String } })
  }
  const paths = ['/v1/models/a%2F..%2Fb:generateContent', '/v1/models/%2e%2e:generateContent']
  for (const path of paths) {
    const answer = await ask(path, requests.google.body, { authorization: `Bearer ${key}` })
    t.match(String(answer.status), /^40[04]$/, path)
  }
  t.notOk(
    provider.requests.slice(before).some(({ method }) => method === 'POST'),
    'no model is asked',
  )
})

t.test('200: what a client sends for us or for others does not reach the provider', async t => {
  const key = await world.newKey()
  const { path, body } = requests.openai
  const answer = await ask(path, body, {
    authorization: `Bearer ${key}`,
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
  })
  t.equal(answer.status, 200)
  const { headers } = provider.requests.at(-1)!
  const names = headers.map(([name]) => name.toLowerCase()).toSorted()
  const ofTheHop = new Set(
    'accept-encoding connection content-length host transfer-encoding'.split(' '),
  )
  t.same(
    names.filter(name => !ofTheHop.has(name)),
    [
      'accept',
      'authorization',
      'content-type',
      'openai-organization',
      'openai-project',
      'user-agent',
    ],
  )
  t.equal(findHeader(headers, 'user-agent'), 'product/1.0')
  t.equal(findHeader(headers, 'accept-encoding') ?? 'identity', 'identity')
})

t.test("400: a key of another provider's form is not sent", async t => {
  const key = await buildKey(backend)
  const sent = () => provider.requests.length
  for (const [family, foreign, owner] of [
    ['openai', 'sk-ant-api03-0123456789', 'anthropic'],
    ['openai', 'AIzaSy0123456789', 'google'],
    ['anthropic', 'sk-or-v1-0123456789', 'openrouter'],
    ['google', 'gsk_0123456789', 'groq'],
  ] as const) {
    const before = sent()
    const { path, body } = requests[family]
    const headers = { 'x-memory-key': key, 'x-provider-key': foreign }
    const refused = await ask(path, body, headers)
    t.equal(refused.status, 400, `${foreign} to ${family}`)
    const message = new RegExp(`one of ${owner}, and the request is for ${family}`)
    t.match(refused.body, { error: { message } })
    t.notMatch(JSON.stringify(refused.body), foreign)
    t.equal(sent(), before, 'the provider has heard nothing')
    const stored = await fetch(`${base}/v1/account/provider-keys/${family}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ key: foreign }),
    })
    t.equal(stored.status, 400, 'nor is it stored')
  }
})
