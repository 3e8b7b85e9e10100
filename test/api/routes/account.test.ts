import t from 'tap'
import { mintKey, hashKey } from '#shared/access/key.ts'
import { insertAdminKey } from '#shared/access/admin-keys.postgres.ts'
import { rollUpKeyUsage } from '#shared/billing/usage-sums.postgres.ts'
import { openProviderKeys, storeProviderKey } from '#shared/access/provider-key.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import { insertPastUsage, rewindUsageRollUp } from '#test/support/checks/alter-jobs.ts'
import { accountIdOf, balanceOf, countRows, tableText } from '#test/support/checks/observe.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

await passMidnight()
const email = 'owner@example.com'
// Without the sweep, which rolls usage up.
const { backend, base, newClient } = await startService(t, {
  env: { ADMIN_SECRET: 'break-the-glass-please', ADMIN_EMAIL: 'Root@example.com' },
  jobs: allJobsBut('sweep'),
})
const { key, ...api } = await newClient(email)
const { query } = backend.postgres

const accountId = () => accountIdOf(backend, email)

t.test('200: usage sums requests, tokens and models of one key', async t => {
  await api.post('/v1/memory/ingest?wait=true', {
    model: 'openai/gpt-5',
    messages: [
      { role: 'user', content: 'the boiler was serviced in May' },
      { role: 'assistant', content: 'noted' },
    ],
  })
  const { body: found } = await api.post('/v1/memory/search', { query: 'boiler service', limit: 3 })
  await backend.usage.flush()
  const { body } = await api.get('/v1/account/usage')
  t.match(body, {
    key: `${key.slice(0, 6)}…${key.slice(-4)}`,
    total_requests: 2,
    total_output_tokens: 2,
    by_model: { 'openai/gpt-5': { requests: 1, input_tokens: body.total_input_tokens } },
  })
  t.equal(
    body.total_memory_tokens,
    body.total_input_tokens + body.total_output_tokens + found.tokenCount,
  )
  const stranger = await newClient(email)
  t.equal((await stranger.get('/v1/account/usage')).body.total_requests, 0, 'one key, one vault')
})

t.test('200: reads that find nothing are counted, and cost nothing', async t => {
  const client = await newClient()
  for (let n = 0; n < 3; n++) {
    await client.post('/v1/memory/search', { query: 'anything', limit: 3 })
  }
  const messages = [{ role: 'user', content: 'anything?' }]
  await client.post('/v1/memory/prepare', { messages })
  await client.post('/v1/memory/date-search', { from: '2020-01-01' })
  await client.get('/v1/memory/list')
  await backend.usage.flush()
  const { body } = await client.get('/v1/account/usage')
  t.match(body, { total_requests: 6, total_memory_tokens: 0, by_model: {} })
})

t.test('200: rolled-up days and single events give the same sums', async t => {
  const today = new Date().toISOString().slice(0, 10)
  await rewindUsageRollUp(backend, 'usage_rolled', 10)
  const { account } = await resolveCaller(backend, key)
  for (const model of ['openai/gpt-5', null]) {
    await insertPastUsage(backend, account, [1, 2, 3, 4, 5], { model, memoryTokens: 100 })
  }
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
  const periods = [
    '?by_day=true',
    `?by_day=true&start=${day(5)}&end=${day(1)}`,
    `?by_day=true&start=${day(3)}T10:30:00Z&end=${day(1)}T01:00:00Z`,
    `?by_day=true&start=${today}`,
  ]
  const sums = async () =>
    Promise.all(periods.map(async p => (await api.get(`/v1/account/usage${p}`)).body))
  const strip = <Body extends object>(bodies: (Body & { total_requests: number })[]) =>
    bodies.map(body => ({ ...body, period: null }))
  const before = strip(await sums())
  t.equal(before[0]!.total_requests, 12)
  t.equal(before[1]!.total_requests, 10)
  t.same(
    before[1]!.by_day,
    [5, 4, 3, 2, 1].map(ago => ({
      day: day(ago),
      requests: 2,
      input_tokens: 2,
      output_tokens: 4,
      memory_tokens: 200,
    })),
    'days too, oldest first',
  )
  t.same((await api.get('/v1/account/usage')).body.by_day, undefined, 'where they are asked for')
  t.equal(await rollUpKeyUsage(query), 10)
  t.equal(await rollUpKeyUsage(query), 0, 'a day is rolled up once')
  t.same(strip(await sums()), before)
  t.ok((await countRows(backend, 'usage_daily')) >= 8)
})

t.test('200: a named end is part of the period, and so it is told', async t => {
  const period = async (query: string): Promise<unknown> =>
    (await api.get(`/v1/account/usage?${query}`)).body.period
  t.same(await period('start=2026-01-01&end=2026-01-31'), {
    start: '2026-01-01T00:00:00.000Z',
    end: '2026-01-31T23:59:59.999Z',
  })
  const told = { start: '2026-01-01T00:00:00.000Z', end: '2026-01-31T10:00:00.000Z' }
  t.same(await period('start=2026-01-01&end=2026-01-31T12:00:00%2B02:00'), told)
  t.same(await period('start=2026-01-01&end=2026-01-31T12:00:00+02:00'), told, 'a bare + is a +')
})

t.test('200: a model is counted with its provider where its name tells it', async t => {
  const client = await newClient('named@example.com')
  for (const model of ['gpt-5', 'openai/gpt-5', 'claude-sonnet-4-5', 'my-own-model']) {
    const messages = [{ role: 'user', content: 'the boiler was serviced' }]
    t.equal((await client.post('/v1/memory/ingest', { model, messages })).status, 202)
  }
  const { body } = await client.get('/v1/account/usage')
  t.match(body.by_model, {
    'openai/gpt-5': { requests: 2 },
    'anthropic/claude-sonnet-4-5': { requests: 1 },
    'my-own-model': { requests: 1 },
  })
})

t.test('400: a period that ends before it starts', async t => {
  t.match(await api.get('/v1/account/usage?start=2026-02-01&end=2026-01-01'), {
    status: 400,
    body: { error: /lies after/, hint: /Swap/ },
  })
})

t.test('402: a balance that is used up stops reading and storing', async t => {
  const id = await accountId()
  await setBalance(backend, { account: id }, 12)
  const messages = [{ role: 'user', content: 'one two three four five six seven eight nine ten' }]
  const first = await api.post('/v1/memory/ingest', { messages })
  t.equal(first.status, 202)
  t.equal(await balanceOf(backend, { account: id }), 12 - first.body.retrieval_tokens)
  await api.post('/v1/memory/search', { query: 'boiler', limit: 3 })
  await backend.usage.flush()
  t.ok((await balanceOf(backend, { account: id }))! <= 0, 'reads are charged too')
  for (const [path, body] of [
    ['/v1/memory/ingest', { messages }],
    ['/v1/memory/search', { query: 'x', limit: 1 }],
    ['/v1/memory/prepare', { messages }],
  ] as const) {
    t.match(await api.post(path, body), { status: 402, body: { error: /balance/ } })
  }
  t.equal((await api.get('/v1/memory/stats')).status, 200)
  await setBalance(backend, { account: id }, null)
})

t.test('200: provider keys are stored sealed, listed masked, forgotten', async t => {
  const path = '/v1/account/provider-keys'
  const secret = 'sk-proj-0123456789abcdefXYZ'
  const put = await api.send('PUT', `${path}/openai`, { body: { key: secret } })
  t.match(put, { status: 200, body: { provider: 'openai', masked_key: 'sk-…fXYZ' } })
  t.notMatch(await tableText(backend, 'provider_keys'), '0123456789')
  const id = await accountId()
  t.same(Object.fromEntries(await openProviderKeys(backend, id)), { openai: secret })

  await api.send('PUT', `${path}/openai`, { body: { key: 'short' } })
  t.same(Object.fromEntries(await openProviderKeys(backend, id)), { openai: 'short' })
  t.match((await api.get(path)).body.provider_keys, [{ provider: 'openai', masked_key: '…' }])
  t.match(await api.send('DELETE', `${path}/openai`), { status: 200, body: { deleted: true } })
  t.equal((await api.send('DELETE', `${path}/openai`)).status, 404)
  t.same((await api.get(path)).body.provider_keys, [])
})

t.test('400: what is no key of a provider is not stored, and never sent', async t => {
  const path = '/v1/account/provider-keys'
  for (const [given, error] of [
    [key, /is a Memory Key/],
    [` ${key}:read`, /is a Memory Key/],
    ['sk two words', /printable ASCII/],
    ['schlüssel', /printable ASCII/],
    ['   ', /printable ASCII/],
  ] as const) {
    const refused = await api.send('PUT', `${path}/groq`, { body: { key: given } })
    t.match(refused, { status: 400, body: { error } })
  }
  t.same((await api.get(path)).body.provider_keys, [])
  await api.send('PUT', `${path}/groq`, { body: { key: ' gsk_pasted-with-blanks ' } })
  t.same(Object.fromEntries(await openProviderKeys(backend, await accountId())), {
    groq: 'gsk_pasted-with-blanks',
  })
  await api.send('DELETE', `${path}/groq`)
})

t.test('200 again: a provider key that was deleted, under the same Idempotency-Key', async t => {
  const path = '/v1/account/provider-keys/groq'
  await api.send('PUT', path, { body: { key: 'gsk_0123456789' } })
  const remove = (idempotency: string) =>
    api.send('DELETE', path, { headers: { 'idempotency-key': idempotency } })
  t.match(await remove('one'), { status: 200, body: { deleted: true, id: 'groq' } })
  t.match(await remove('one'), { status: 200, body: { deleted: true, id: 'groq' } })
  t.equal((await remove('two')).status, 404)
  await api.send('PUT', path, { body: { key: 'gsk_0123456789' } })
  t.equal((await remove('one')).status, 200)
  t.equal((await api.get('/v1/account/provider-keys')).body.provider_keys.length, 1)
  t.equal((await remove('two')).status, 200, 'what was refused gave its key back')
})

t.test('404: a provider that nobody knows', async t => {
  const path = '/v1/account/provider-keys'
  t.match(await api.send('PUT', `${path}/nobody`, { body: { key: 'x' } }), {
    status: 404,
    body: { hint: /openai/ },
  })
  for (const name of ['nobody', '%00', 'N', 'no body'])
    t.equal((await api.send('DELETE', `${path}/${name}`)).status, 404, name)
  const owner = { account: await accountId(), actor: 'test' }
  await storeProviderKey({ query, seal: backend.seal }, owner, 'gone', 'of-a-former-provider')
  t.match((await api.get(path)).body.provider_keys, [{ provider: 'gone' }])
  t.equal((await api.send('DELETE', `${path}/gone`)).status, 200, 'a key outlives its provider')
})

t.test('200: the admin of an email reaches the account of that email, and only that', async t => {
  const path = '/v1/account/provider-keys'
  const admin = mintKey('admin')
  const expired = mintKey('admin')
  const issue = (raw: string, days: number) =>
    insertAdminKey(query, {
      hash: hashKey(backend.config.keyPepper, raw),
      email,
      masked: 'mk_adm…',
      issuedBy: 'test',
      expiresAt: new Date(Date.now() + days * 86_400_000),
    })
  await issue(admin, 1)
  await issue(expired, -1)
  await api.send('PUT', `${path}/mistral`, { body: { key: 'a-mistral-key' } })
  for (const headers of [
    { authorization: `Bearer ${admin}` },
    { 'x-admin-key': admin },
    { 'x-dashboard-key': admin },
  ]) {
    const { status, body } = await createTestClient(base).get(path, headers)
    t.equal(status, 200)
    t.match(body.provider_keys, [{ provider: 'mistral' }])
  }
  for (const glass of [
    { authorization: 'Bearer break-the-glass-please' },
    { 'x-admin-key': 'break-the-glass-please' },
  ]) {
    const { body } = await createTestClient(base).get(path, {
      ...glass,
      'x-admin-email': email,
    })
    t.same(body.provider_keys, [], 'the email a client sends is not looked at')
  }
  for (const wrong of [expired, mintKey('admin'), 'mk_admin']) {
    const { status } = await createTestClient(base).get(path, {
      authorization: `Bearer ${wrong}`,
    })
    t.equal(status, 401)
  }
})
