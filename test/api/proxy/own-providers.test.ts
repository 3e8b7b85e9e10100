import OpenAI from 'openai'
import t from 'tap'
import { openCompletionModel } from '#shared/models/completion.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findHeader, startRecordingServer } from '#test/support/doubles/recording-server.ts'
import { startService } from '#test/support/start/start-service.ts'

const models = await startModelProvider(t)
const embedding = await startEmbeddingProvider(t)
const apiVersion = '2024-10-21'
const azureKey = 'of-the-azure-resource'

/** An Azure resource: it refuses as Azure does, and lets the other doubles answer for a deployment. */
const azure = await startRecordingServer(t, async (seen, answer) => {
  const { pathname, searchParams } = new URL(seen.url, 'http://azure')
  const refuse = (status: number, code: string): void => {
    answer.head(status, { 'content-type': 'application/json' })
    void answer.write(JSON.stringify({ error: { code, message: `refused: ${code}` } }))
    answer.end()
  }
  const key = findHeader(seen.headers, 'api-key')
  if (key !== azureKey || findHeader(seen.headers, 'authorization')) return refuse(401, '401')
  const path =
    /^\/openai\/deployments\/(?:chat-1|embed-1)(\/(?:chat\/completions|embeddings))$/.exec(
      pathname,
    ) ?? /^\/openai(\/responses)$/.exec(pathname)
  const v1 = /^\/openai\/v1(\/.*)$/.exec(pathname)
  if (searchParams.get('api-version') !== (v1 ? 'preview' : apiVersion)) return refuse(404, '404')
  if (!path && !v1) return refuse(404, 'DeploymentNotFound')
  const rest = (path ?? v1)![1]!
  const base = rest === '/embeddings' ? embedding.baseUrl : `${models.directOrigin}/azure/v1`
  const response = await fetch(base + rest, {
    method: seen.method,
    headers: { 'content-type': 'application/json' },
    body: new Uint8Array(seen.body),
  })
  answer.head(response.status, { 'content-type': response.headers.get('content-type')! })
  for await (const bytes of response.body!) void answer.write(bytes)
  answer.end()
})

const { backend, base } = await startService(t, {
  env: {
    PROVIDERS: 'lab, home-server,vectors,azure,azure-v1,azure-one',
    LAB_BASE_URL: `${models.origin}/lab/v1/`,
    LAB_API_KEY: 'of-the-operator',
    LAB_MODELS: 'small-1,large-1',
    HOME_SERVER_BASE_URL: `${models.origin}/home-server/v1`,
    VECTORS_BASE_URL: embedding.baseUrl,
    VECTORS_API_KEY: 'of-the-operator',
    VECTORS_MODELS: 'nomic',
    EMBEDDINGS: 'vectors/nomic',
    AZURE_BASE_URL: `${azure.origin}/openai?api-version=${apiVersion}`,
    AZURE_API_KEY: azureKey,
    AZURE_V1_BASE_URL: `${azure.origin}/openai/v1?api-version=preview`,
    AZURE_ONE_BASE_URL: `${azure.origin}/openai/deployments/chat-1/?api-version=${apiVersion}`,
  },
  jobs: ['ingest', 'reembed'],
})

const newOpenAi = async (headers: Record<string, string> = {}) => {
  const client = await createKeyedClient(backend, base)
  const options = { apiKey: client.key, baseURL: `${base}/v1`, maxRetries: 0 }
  return { client, openai: new OpenAI({ ...options, defaultHeaders: headers }) }
}

/** Asks a model in each of OpenAI's ways. */
async function askInEveryWay(openai: OpenAI, model: string) {
  const messages = [{ role: 'user' as const, content: 'Where do I live?' }]
  const chat = await openai.chat.completions.create({ model, messages })
  let streamed = ''
  for await (const { choices } of await openai.chat.completions.create({
    model,
    messages,
    stream: true,
  }))
    streamed += choices[0]?.delta?.content ?? ''
  const response = await openai.responses.create({ model, input: 'Where do I live?' })
  return [chat.choices[0]?.message.content, streamed, response.output_text]
}

const answered = [defaultReply, defaultReply, defaultReply]
const credentialsOf = (requests: typeof models.requests) =>
  requests.map(
    ({ headers }) => findHeader(headers, 'api-key') ?? findHeader(headers, 'authorization'),
  )

t.beforeEach(() => {
  models.clearRequests()
  azure.requests.length = 0
})

t.test('200: two providers of the operator’s own, one with keys and one without', async t => {
  const { client, openai } = await newOpenAi()
  const { status, body } = await client.send('PUT', '/v1/account/provider-keys/lab', {
    body: { key: 'of-the-account' },
  })
  t.match({ status, body }, { status: 200, body: { provider: 'lab' } })
  t.same(await askInEveryWay(openai, 'lab/small-1'), answered)
  t.same(await askInEveryWay(openai, 'home-server/tiny:1b'), answered)
  t.same(
    models.requests.map(({ url }) => url),
    ['lab', 'home-server'].flatMap(name => [
      `/${name}/v1/chat/completions`,
      `/${name}/v1/chat/completions`,
      `/${name}/v1/responses`,
    ]),
  )
  t.same(credentialsOf(models.requests), [
    ...Array.from({ length: 3 }, () => 'Bearer of-the-account'),
    ...Array.from({ length: 3 }, () => undefined),
  ])
  t.match(JSON.parse(models.requests[3]!.body.toString()), { model: 'tiny:1b' })
  await openai.chat.completions.create({ model: 'large-1', messages: [] }).catch(() => {})
  t.match(models.requests.at(-1)?.url, /^\/lab\//, 'a bare name, by the list of the operator')
})

t.test('401: the key of the operator pays for no call; a key of the request does', async t => {
  const { client, openai } = await newOpenAi()
  await t.rejects(askInEveryWay(openai, 'lab/small-1'), { status: 401, message: /key for lab/ })
  t.same(models.requests, [])
  const own = new OpenAI({
    apiKey: client.key,
    baseURL: `${base}/v1`,
    defaultHeaders: { 'X-Provider-Key': 'of-the-request' },
  })
  t.same(await askInEveryWay(own, 'lab/small-1'), answered)
  t.same(new Set(credentialsOf(models.requests)), new Set(['Bearer of-the-request']))
})

t.test(
  '200: it embeds memories with the key of the operator, and for clients with theirs',
  async t => {
    const { client, openai } = await newOpenAi({ 'X-Provider-Key': 'of-the-request' })
    await client.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: 'The violin stands in the attic.' }],
    })
    const found = await client.post('/v1/memory/search', { query: 'violin attic', limit: 1 })
    t.match(found.body.memories, [{ content: /violin/ }])
    const { data } = await openai.embeddings.create({ model: 'vectors/nomic', input: ['violin'] })
    t.equal(data[0]?.embedding.length, 64)
  },
)

t.test('200: lists have it: models, provider keys, X-Provider', async t => {
  const { client, openai } = await newOpenAi()
  const { body } = await client.get('/v1/models')
  for (const name of ['lab/large-1', 'lab/small-1', 'vectors/nomic'])
    t.ok(body.models.includes(name), name)
  t.notOk(
    body.models.some((name: string) => name.startsWith('azure')),
    'deployments are unknown',
  )
  const { body: keys } = await client.get('/v1/account/provider-keys')
  t.match(keys, { provider_keys: [], providers: /openai.*vllm.*lab.*home-server/ })
  const named = { headers: { 'X-Provider': 'lab', 'X-Provider-Key': 'of-the-request' } }
  await openai.files.list(undefined, named).catch(() => {})
  t.match(models.requests.at(-1)?.url, /^\/lab\/v1\/files/)
})

t.test('200: an organization is processed by it once its models are named', async t => {
  const admin = createTestClient(base, (await buildAdmin(backend)).key)
  const send = (method: string, path: string, body: object) => admin.send(method, path, { body })
  t.match(await send('POST', '/v1/orgs', { name: 'A', processor_provider: 'home-server' }), {
    status: 400,
    body: { error: /extract_model and classify_model/ },
  })
  t.match(await send('POST', '/v1/orgs', { name: 'B', processor_provider: 'nobody' }), {
    status: 400,
    body: { error: /processor_provider/, hint: /lab, home-server/ },
  })
  const made = await send('POST', '/v1/orgs', { name: 'C', processor_provider: 'lab' })
  t.match(made, { status: 201, body: { extract_model: 'small-1', notice: /no key for lab/ } })
  const moved = { processor_provider: 'home-server', extract_model: 'm', classify_model: 'm' }
  t.match(await send('PATCH', `/v1/orgs/${made.body.org_id}`, moved), { status: 200, body: moved })
  t.match(await send('PATCH', `/v1/orgs/${made.body.org_id}`, { processor_provider: 'nobody' }), {
    status: 400,
  })
})

t.test('200: Azure: deployments by path with a version, and its newer path', async t => {
  const { client, openai } = await newOpenAi({ 'X-Provider-Key': azureKey })
  t.same(await askInEveryWay(openai, 'azure/chat-1'), answered)
  t.same(await askInEveryWay(openai, 'azure-v1/chat-1'), answered)
  const messages = [{ role: 'user' as const, content: 'Hi' }]
  const chatWith = async (model: string) => openai.chat.completions.create({ model, messages })
  const one = await chatWith('azure-one/any')
  t.equal(one.choices[0]?.message.content, defaultReply)
  const { data } = await openai.embeddings.create({ model: 'azure/embed-1', input: ['violin'] })
  t.equal(data[0]?.embedding.length, 64)
  const chat = '/openai/deployments/chat-1/chat/completions?api-version=2024-10-21'
  t.same(
    azure.requests.map(({ url }) => url),
    [
      chat,
      chat,
      '/openai/responses?api-version=2024-10-21',
      '/openai/v1/chat/completions?api-version=preview',
      '/openai/v1/chat/completions?api-version=preview',
      '/openai/v1/responses?api-version=preview',
      chat,
      '/openai/deployments/embed-1/embeddings?api-version=2024-10-21',
    ],
  )
  // A version of the client's own does not replace that of the operator.
  const versioned = { query: { 'api-version': '1999-01-01' } }
  await openai.chat.completions.create({ model: 'azure/chat-1', messages }, versioned)
  t.equal(azure.requests.at(-1)?.url, chat)
  for (const model of ['azure/..', 'azure/.'])
    await t.rejects(chatWith(model), { status: 400, message: /deployment/ })
  const outside = chatWith('azure/../../x?y')
  await t.rejects(outside, { status: 404, message: /DeploymentNotFound/ })
  t.match(azure.requests.at(-1)?.url, '/openai/deployments/..%2F..%2Fx%3Fy/chat/completions?')

  const embeddings = 'azure/embed-1'
  t.equal((await client.post('/v1/memory/reembed', { embeddings })).status, 200)
  const lost = await client.post('/v1/memory/search', {
    query: 'x',
    limit: 1,
    embeddings: 'azure/none',
  })
  t.match(lost, { status: 502, body: { error: /status 404/ } })
})

t.test('the service asks Azure as its own SDK does, with the key of the account', async t => {
  const schema = { type: 'object', required: [], additionalProperties: false, properties: {} }
  const question = { instructions: 'Answer.', userPrompt: 'Hi', schema }
  for (const name of ['azure', 'azure-v1', 'azure-one']) {
    const provider = backend.config.providers.get(name)!
    const model = openCompletionModel({ provider, name: 'chat-1', apiKey: azureKey })
    const { text } = await model.complete(question, new AbortController().signal)
    t.equal(text, defaultReply, name)
  }
  const chat = '/openai/deployments/chat-1/chat/completions?api-version=2024-10-21'
  t.same(
    azure.requests.map(({ url }) => url),
    [chat, '/openai/v1/chat/completions?api-version=preview', chat],
  )
})
