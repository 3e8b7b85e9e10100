import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { ModelProvider } from '#scripts/lab/prove/model-provider.ts'
import type { RequestInput } from '#scripts/lab/prove/requests/request-plan.ts'
import { buildRequest, planOf } from '#scripts/lab/prove/requests/requests.ts'
import { hashKey, mintKey } from '#shared/access/key.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { processEnvironment, startProcess } from '#test/support/start/processes.ts'
import { createTestService } from '#test/support/start/tenants.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
const key = await buildKey(backend)
const other = await buildKey(backend)
const { send } = await startTestApi(t, backend)

t.test('a key that ends stops at the next request, on every process', async t => {
  const elsewhere = await startProcess(t, 'node api/index.ts', processEnvironment(config))
  const there = createTestClient(elsewhere.base)
  const stats = (client: typeof there, raw: string) =>
    client.get('/v1/memory/stats', { 'x-memory-key': raw })

  const revoked = await buildKey(backend)
  t.equal((await stats(there, revoked)).status, 200)
  const { account } = await resolveCaller(backend, revoked)
  await revokeKey(backend.postgres.query, account, hashKey(config.keyPepper, revoked))
  t.equal((await stats(there, revoked)).status, 401, 'revoked')

  const rotated = await buildKey(backend)
  t.equal((await stats(there, rotated)).status, 200)
  const answer = await send('POST', '/v1/keys/rotate', {
    headers: { 'x-memory-key': rotated },
    body: {},
  })
  t.equal((await stats(there, rotated)).status, 401, 'rotated')
  t.equal((await stats(there, answer.body.key)).status, 200, 'its successor')

  // On a busy machine a short life is over before the first request.
  for (const lifeMs of [700, 7_000, 70_000]) {
    const expiresAt = Date.now() + lifeMs
    const expiring = await send('POST', '/v1/keys', {
      headers: { 'x-memory-key': key },
      body: { expires_at: new Date(expiresAt).toISOString() },
    })
    let admittedAt = 0
    const isRefused = async (): Promise<boolean> => {
      const begun = Date.now()
      const { status } = await stats(there, expiring.body.key)
      if (status === 200) admittedAt = begun
      return status === 401
    }
    if (expiring.status !== 201 || (await isRefused())) continue
    t.ok(admittedAt > 0, 'not yet')
    await waitUntil('it has expired', isRefused, lifeMs + 60_000)
    t.ok(admittedAt < expiresAt + 1_000, 'within a second')
    return
  }
  t.fail('a key never lived until its first request')
})

/** Says and names canaries alone. */
const input: RequestInput = {
  word: 'canary-said',
  foreignWord: 'canary-asked',
  foreignSession: 'canary-session',
  id: () => `canary-id${other}`,
  destination: () => `${other}:off`,
  random: seededRandom(1),
  origin: 'https://example.com',
}

t.test('logs hold neither keys nor texts, at debug level, on every route and error', async t => {
  const provider = await startEmbeddingProvider(t)
  const models = new ModelProvider()
  t.teardown(() => models.close())
  const { key: adminKey } = await buildAdmin(backend)
  const unknown = mintKey('vault')
  const env = processEnvironment(config, {
    ...(await models.listen()),
    LOG_LEVEL: 'debug',
    EMBEDDINGS: 'ollama/double',
    OLLAMA_BASE_URL: provider.baseUrl,
    OPENAI_API_KEY: 'sk-canary-provider-key-0123456789',
  })
  const [web, worker] = await Promise.all([
    startProcess(t, 'node api/index.ts', env),
    startProcess(t, 'node workers/index.ts', env),
  ])
  const client = createTestClient(web.base)
  const service = await createTestService(t, backend, { base: web.base, origin: '' })
  const content = 'canary-said: the safe opens with 4711'
  const broken = [
    { messages: content, query: { canary: content }, name: 'canary-name' },
    `{"messages": [{"role": "user", "content": "${content}"`,
    `{"__proto__": "${content}"}`,
  ]
  for (const endpoint of Object.values(contractDocument.endpoints)) {
    if (planOf(endpoint).withOwnKey) continue
    for (const [n, raw] of [key, unknown, `${key}:read`, adminKey].entries()) {
      const { path, options } = buildRequest(endpoint, input)
      const { method = 'GET' } = options
      const headers = {
        ...options.headers,
        ...(n % 2 === 0 && { 'x-memory-key': raw }),
        prefer: 'respond-async',
        'idempotency-key': `canary-id ${method} ${path} ${raw}`.slice(0, 200),
      }
      await service.send(raw, path, { ...options, headers })
      await service.send(raw, `${path.split('?')[0]}?canary-asked=${raw}`, {
        method,
        headers: { 'x-session-id': 'canary-session' },
        ...(method !== 'GET' && { body: broken[n % broken.length] }),
      })
    }
  }
  provider.fail(500, 12)
  // Its vault was stored in before, with another model, and keeps that.
  const embeddings = 'ollama/double'
  const question = { query: 'canary-asked again', limit: 5, embeddings }
  const failing = await client.post('/v1/memory/search', question, { 'x-memory-key': key })
  t.equal(failing.status, 502)
  const exchange = { messages: [{ role: 'user', content }], embeddings }
  await client.post('/v1/memory/ingest', exchange, { 'x-api-key': key })
  // Held, where its model still does not answer when it is asked whether it is there.
  await waitUntil('the worker has failed once', () =>
    /ingest\.failed|job\.held/.test(worker.output()),
  )
  const output = web.output() + worker.output()
  t.match(output, /request\.answered/)
  t.ok(output.split('\n').length > 200, 'the log is there')
  for (const canary of [
    'canary',
    key,
    other,
    unknown,
    adminKey,
    key.slice(3),
    config.keyPepper,
    new URL(config.databaseUrl).password,
  ]) {
    const line = output.split('\n').find(line => line.includes(canary))
    t.equal(line, undefined, `${canary.slice(0, 12)}… is in no line`)
  }
})
