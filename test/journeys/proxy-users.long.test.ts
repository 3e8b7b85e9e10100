import t from 'tap'
import { maskKey } from '#shared/access/key.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/api.ts'
import { providerKey } from '#test/support/model-provider.ts'
import { modelNames } from '#test/support/model-provider/clients.ts'
import { readDocuments } from '#test/support/insert-memories.ts'
import { startProxyFixture } from '#test/support/model-provider/proxy-fixture.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world
await startJobWorkers(backend)
const ownerKey = await buildKey(backend)
const owner = createTestClient(base, ownerKey)
for (const name of ['openai', 'anthropic', 'google'] as const) {
  const path = `/v1/account/provider-keys/${name}`
  await owner.send('PUT', path, { body: { key: providerKey(name) } })
}

const question = 'Where is the cellar key?'
const messages = [{ role: 'user', content: question }]

/** A call of each family, by its path. */
const families: Record<string, Record<string, unknown>> = {
  '/v1/chat/completions': { model: modelNames.openai, messages },
  '/v1/responses': { model: modelNames.openai, input: question },
  '/v1/messages': { model: modelNames.anthropic, max_tokens: 50, messages },
  '/v1beta/models/gemini-2.5-flash:generateContent': {
    contents: [{ role: 'user', parts: [{ text: question }] }],
  },
}

const keyOf = async (user: string): Promise<string> =>
  (await owner.post('/v1/keys', { external_id: user })).body.key

const forms: Record<string, (user: string) => { headers: Record<string, string>; extra: object }> =
  {
    header: user => ({ headers: { 'x-memory-user': user }, extra: {} }),
    body: user => ({ headers: {}, extra: { memory_user: user } }),
    both: user => ({ headers: { 'x-memory-user': user }, extra: { memory_user: user } }),
  }

for (const [path, call] of Object.entries(families)) {
  for (const [form, named] of Object.entries(forms)) {
    t.test(`${path}: the user of the ${form} is asked about and remembered`, async t => {
      const user = `secret-id-${form}-${path.length}`
      const key = await keyOf(user)
      const fact = 'The cellar key hangs behind the clock.'
      const stored = { messages: [{ role: 'user', content: fact }] }
      await createTestClient(base, key).post('/v1/memory/ingest?wait=true', stored)
      provider.clearRequests()
      const { headers, extra } = named(user)
      const answer = await fetch(base + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${ownerKey}`,
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify({ ...call, ...extra }),
      })
      await answer.text()
      t.equal(answer.status, 200)
      const [sent] = provider.requests
      const forwarded = sent!.body.toString() + JSON.stringify(sent!.headers)
      t.match(forwarded, 'behind the clock')
      t.notMatch(forwarded, user)
      t.notMatch(forwarded, /memory.user/i)
      await t.resolves(storedFor(key, 3), 'the exchange is in the vault of the user')
      t.same(await readDocuments(backend, ownerKey), [])
      await backend.usage.flush()
      const usage = await owner.get('/v1/account/usage', { 'x-memory-user': user })
      t.match(usage.body, {
        key: maskKey(key),
        by_model: { [Object.keys(usage.body.by_model)[0]!]: {} },
      })
      t.match(JSON.parse(answer.headers.get('x-memory-reflection-debt')!), { raw_units: 1 })
    })
  }
}

async function storedFor(key: string, count: number): Promise<void> {
  while ((await readDocuments(backend, key)).length < count) {
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

t.test('400: header and body that differ, and a body that is no id', async t => {
  provider.clearRequests()
  const call = families['/v1/chat/completions']!
  const both = { ...call, memory_user: 'bob' }
  const answer = await owner.post('/v1/chat/completions', both, { 'x-memory-user': 'ada' })
  t.match(answer, { status: 400, body: { error: { message: /different users/ } } })
  for (const memory_user of ['undefined', '', 7]) {
    t.equal((await owner.post('/v1/chat/completions', { ...call, memory_user })).status, 400)
  }
  t.equal(provider.requests.length, 0)
})

t.test('403: the key of a user names no other in the body', async t => {
  provider.clearRequests()
  const user = createTestClient(base, await keyOf('ada'))
  const call = { ...families['/v1/chat/completions'], memory_user: 'bob' }
  t.equal((await user.post('/v1/chat/completions', call)).status, 403)
  t.equal(provider.requests.length, 0)
})

t.test('embeddings pass through on the user’s account', async t => {
  provider.clearRequests()
  const body = { model: 'openai/text-embedding-3-small', input: 'x' }
  await owner.post('/v1/embeddings', body, { 'x-memory-user': 'passing' })
  t.notMatch(JSON.stringify(provider.requests[0]!.headers), 'passing')
  await backend.usage.flush()
  const { body: usage } = await owner.get('/v1/account/usage', { 'x-memory-user': 'passing' })
  t.equal(usage.total_requests, 1)
})
