import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** A provider's list endpoint on loopback, and what it was asked. */
type Lister = {
  base: string
  asked: { url: string; headers: IncomingMessage['headers'] }[]
  answer: (response: ServerResponse, headers: IncomingMessage['headers']) => void
}

async function lister(t: Test, list: unknown): Promise<Lister> {
  const self: Lister = { base: '', asked: [], answer: response => json(response, list) }
  const server = createServer(({ url = '', headers }, response) => {
    self.asked.push({ url, headers })
    self.answer(response, headers)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  self.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return self
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

const ids = (...names: string[]) => ({
  object: 'list',
  data: names.map(id => ({ id, object: 'model' })),
})

/** The clock stands still but for what a test adds: a busy machine is slow. */
const { now } = Date
const begunAt = now()
let ahead = 0
Date.now = () => begunAt + ahead
t.teardown(() => (Date.now = now))

const openai = await lister(t, ids('gpt-5', 'text-embedding-3-small', 'tts-1', 'gpt-5.1', 'gpt-5'))
const anthropic = await lister(t, { data: [{ type: 'model', id: 'claude-sonnet-4-5' }] })
const google = await lister(t, {
  models: [{ name: 'models/gemini-2.5-flash' }, { name: 'models/text-embedding-004' }],
})
const together = await lister(t, [{ id: 'meta-llama/Llama-4' }])
const ollama = await lister(t, ids('llama3.2:latest'))

const addresses = {
  OPENAI_BASE_URL: `${openai.base}/v1`,
  ANTHROPIC_BASE_URL: anthropic.base,
  GOOGLE_BASE_URL: google.base,
  TOGETHER_BASE_URL: `${together.base}/v1`,
  EMBEDDINGS: 'local',
}
const backend = await createTestBackend(t, { env: addresses })

/** An account of its own with these provider keys, asked by an API that has asked nobody yet. */
async function ownerOf(t: Test, keys: Record<string, string>, of = backend): Promise<TestClient> {
  const client = await startTestApi(t, of, await buildKey(of))
  for (const [provider, key] of Object.entries(keys)) {
    await client.send('PUT', `/v1/account/provider-keys/${provider}`, { body: { key } })
  }
  return client
}
const list = (client: TestClient) => client.get('/v1/models')

t.beforeEach(() => {
  openai.answer = response =>
    json(response, ids('gpt-5', 'text-embedding-3-small', 'tts-1', 'gpt-5.1', 'gpt-5'))
  for (const one of [openai, anthropic, google, together, ollama]) one.asked.length = 0
})

t.test('200: what every provider of the account offers, each asked its own way', async t => {
  const client = await ownerOf(t, {
    openai: 'key-of-openai',
    anthropic: 'key-of-anthropic',
    google: 'key-of-google',
    together: 'key-of-together',
  })
  const before = Date.now()
  const { status, body } = await list(client)
  t.equal(status, 200)
  t.same(body.providers, [
    { provider: 'openai', models: ['gpt-5', 'gpt-5.1', 'text-embedding-3-small', 'tts-1'] },
    { provider: 'anthropic', models: ['claude-sonnet-4-5'] },
    { provider: 'google', models: ['gemini-2.5-flash', 'text-embedding-004'] },
    { provider: 'together', models: ['meta-llama/Llama-4'] },
  ])
  t.same(body.models, [
    'openai/gpt-5',
    'openai/gpt-5.1',
    'openai/text-embedding-3-small',
    'openai/tts-1',
    'anthropic/claude-sonnet-4-5',
    'google/gemini-2.5-flash',
    'google/text-embedding-004',
    'together/meta-llama/Llama-4',
  ])
  t.equal(body.default, 'openai/gpt-5.1')
  const updated = Date.parse(body.catalog_updated)
  t.ok(updated >= before && updated <= Date.now())

  t.match(openai.asked, [{ url: '/v1/models', headers: { authorization: 'Bearer key-of-openai' } }])
  t.match(anthropic.asked, [
    {
      url: '/v1/models?limit=1000',
      headers: { 'x-api-key': 'key-of-anthropic', 'anthropic-version': '2023-06-01' },
    },
  ])
  t.match(google.asked, [
    { url: '/v1beta/models?pageSize=1000', headers: { 'x-goog-api-key': 'key-of-google' } },
  ])
  t.equal(ollama.asked.length, 0, 'without an address of its own it is not asked')
  const told = JSON.stringify([anthropic.asked, google.asked])
  t.notMatch(told, 'authorization', 'a-key is where its provider expects it and nowhere else')
  t.notMatch(JSON.stringify([openai.asked, anthropic.asked, google.asked]), 'mk_')
})

t.test("200: the operator's keys reach too, the account's own come first", async t => {
  const operated = await createTestBackend(t, {
    env: { ...addresses, OPENAI_API_KEY: 'of the operator', OLLAMA_BASE_URL: `${ollama.base}/v1` },
  })
  const stranger = await ownerOf(t, {}, operated)
  t.same((await list(stranger)).body.models, [
    'openai/gpt-5',
    'openai/gpt-5.1',
    'openai/text-embedding-3-small',
    'openai/tts-1',
    'ollama/llama3.2:latest',
  ])
  t.equal(ollama.asked[0]!.headers.authorization, undefined)
  const owner = await ownerOf(t, { openai: 'of-the-account' }, operated)
  await list(owner)
  t.same(
    openai.asked.map(({ headers }) => headers.authorization),
    ['Bearer of the operator', 'Bearer of-the-account'],
  )
})

t.test('200: without any provider key there are no models', async t => {
  const { status, body } = await list(await ownerOf(t, {}))
  t.equal(status, 200)
  t.match(body, { providers: [], models: [], default: '' })
})

t.test('200: a list is an hour good, one for each key; racing callers share a call', async t => {
  const client = await ownerOf(t, { openai: 'first-key' })
  const answers = await Promise.all(Array.from({ length: 20 }, () => list(client)))
  t.equal(openai.asked.length, 1)
  ahead += 3_590_000
  const late = await list(client)
  t.equal(openai.asked.length, 1)
  t.equal(late.body.catalog_updated, answers[0]!.body.catalog_updated)
  ahead += 20_000
  t.not((await list(client)).body.catalog_updated, late.body.catalog_updated)
  t.equal(openai.asked.length, 2)

  await client.send('PUT', '/v1/account/provider-keys/openai', { body: { key: 'second-key' } })
  await list(client)
  t.equal(openai.asked.length, 3, 'another key may reach other models')
})

t.test('200: a provider that fails keeps its last list and fails no other', async t => {
  const client = await ownerOf(t, { openai: 'a-key', google: 'a-key' })
  const { body: first } = await list(client)
  openai.answer = response => json(response, { error: { message: 'down' } }, 500)
  ahead += 3_610_000
  const { status, body } = await list(client)
  t.equal(status, 200)
  const fault = 'openai answers with status 500: down'
  t.same(
    body.providers,
    first.providers.map((row: { provider: string }) =>
      row.provider === 'openai' ? { ...row, fault } : row,
    ),
  )
  t.equal(openai.asked.length, 2)
  await list(client)
  t.equal(openai.asked.length, 2, 'it is left alone for a minute')
  ahead += 61_000
  await list(client)
  t.equal(openai.asked.length, 3)

  const fresh = await ownerOf(t, { openai: 'a-new-key', google: 'a-key' })
  t.match(
    (await list(fresh)).body.providers,
    [{ provider: 'openai', models: [], fault }, { provider: 'google' }],
    'what has never been listed says why',
  )
})

t.test('200: providers are asked side by side, and waited for five seconds', async t => {
  // On a machine that stands still the other provider may be late, too; a minute later it is asked again.
  for (let tries = 1; ; tries++) {
    const client = await ownerOf(t, { openai: `slow-${tries}`, google: `other-${tries}` })
    let hasLeft = false
    openai.answer = response => void response.once('close', () => (hasLeft = true))
    google.asked.length = 0
    const listing = list(client)
    await waitUntil('both are asked', () => openai.asked.length > 0 && google.asked.length > 0)
    const sideBySide = !hasLeft
    const { body } = await listing
    await waitUntil('the one that does not answer is left', () => hasLeft)
    openai.asked.length = 0
    ahead += 61_000
    if (tries < 10 && !(sideBySide && body.providers?.length > 0)) continue
    t.ok(sideBySide)
    const late = { provider: 'openai', models: [], fault: /^openai: .*timeout/ }
    t.match(body.providers, [late, { provider: 'google' }])
    return
  }
})

t.test('502: every provider failed, and nothing is known of any', async t => {
  const client = await ownerOf(t, { openai: 'a-key' })
  const secret = 'sk-nobody-sees-this'
  await client.send('PUT', '/v1/account/provider-keys/openai', { body: { key: secret } })
  const elsewhere = await lister(t, ids('gpt-stolen'))
  const answers: Record<string, Lister['answer']> = {
    'a refusal': response => json(response, { error: 'no' }, 401),
    'a redirect': response => {
      response.writeHead(302, { location: `${elsewhere.base}/v1/models` })
      response.end()
    },
    'no JSON': response => response.end('<html>'),
    'no list': response => json(response, { data: 'none' }),
    null: response => json(response, null),
    'a hang-up': response => void response.destroy(),
    'a list without an end': response => {
      const chunk = `"${'x'.repeat(1024 * 1024)}",`
      response.write('{"data":[')
      const more = (): boolean => response.write(chunk)
      response.on('drain', more)
      more()
    },
  }
  for (const [name, answer] of Object.entries(answers)) {
    openai.answer = answer
    ahead += 61_000
    const { status, body } = await list(client)
    t.equal(status, 502, name)
    t.match(body, { error: /openai/, hint: /key/ })
    t.notMatch(JSON.stringify(body), secret)
  }
  t.equal(elsewhere.asked.length, 0, 'a-key does not travel')
  openai.answer = response => json(response, ids('gpt-5'))
  t.equal((await list(client)).status, 502, 'it is left alone for a minute')
  ahead += 61_000
  t.equal((await list(client)).status, 200)
})

t.test('200: names that cannot be names are left out', async t => {
  const client = await ownerOf(t, { openai: 'a-key' })
  const bad = ['', 'a b', 'line\nbreak', 'x'.repeat(201), 5, null, { id: 1 }]
  openai.answer = response =>
    json(response, { data: [null, 7, {}, ...bad.map(id => ({ id })), { id: 'fine' }] })
  t.same((await list(client)).body.models, ['openai/fine'])
  t.equal((await list(client)).body.default, 'openai/fine', 'the first there is')
})

t.test('200: every key of an account may ask, however narrowed', async t => {
  const client = await ownerOf(t, {})
  const key = await buildKey(backend)
  for (const suffix of ['', ':read', ':write', ':off']) {
    t.equal((await list(createTestClient(client.base, key + suffix))).status, 200)
  }
})
