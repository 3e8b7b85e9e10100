import t from 'tap'
import { toSubject, Budgets } from '#shared/access/budgets.ts'
import { tellBudgets } from '#shared/access/key-budgets.postgres.ts'
import { hashKey } from '#shared/access/key.ts'
import { lowestIdAt } from '#shared/core/ids.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { makeExpiryDue } from '#test/support/checks/alter.ts'
import { countRows } from '#test/support/checks/observe.ts'

/** Budgets of requests and tokens in 24 hours: of users by the account's policy, and of single keys. */

const { backend, base, owner, ownerKey } = await startProxyFixture(t)
await startJobWorkers(backend)
const stats = '/v1/memory/stats'
const as = (user: string) => ({ 'x-memory-user': user })
const policy = (body: object) => owner.send('PUT', '/v1/account/policy', { body })
const setBudget = (id: string, body: object) => owner.send('PATCH', `/v1/keys/${id}`, { body })
/** What the double of the providers says of each call. */
const tokensOfCall = 30

t.test('requests of a user: 429 with what and until when, and others go on', async t => {
  const set = await policy({ user_daily_requests: 3 })
  t.match(set.body, { user_daily_requests: 3, user_daily_tokens: null })
  for (let n = 0; n < 3; n++) t.equal((await owner.get(stats, as('ada'))).status, 200)
  const refused = await owner.get(stats, as('ada'))
  t.match(refused, {
    status: 429,
    body: {
      error: 'The budget of 3 requests in 24 hours is used up',
      hint: /^It begins again at 2/,
    },
  })
  const { body: again } = await owner.get(stats, as('ada'))
  t.equal(again.hint, refused.body.hint, 'one moment, however often it is asked')
  const wait = Number(refused.headers.get('retry-after'))
  t.ok(wait > 86_000 && wait <= 86_400, `${wait} s`)
  t.equal((await owner.get(stats, as('bob'))).status, 200)
  t.equal((await owner.get(stats)).status, 200, 'the owner has none')
  for (const dialect of proxyDialects) {
    const answer = await callModel(base, ownerKey, dialect, 'hello', { headers: as('ada') })
    t.equal(answer.status, 429)
    const { error } = (await answer.json()) as { error: { message: string } }
    t.match(error.message, /3 requests.+begins again at/, dialect.format)
  }
  const { body } = await owner.get('/v1/account/users?q=AD')
  t.match(body, {
    users: 2,
    users_max: 100_000,
    items: [
      {
        external_id: 'ada',
        budget: { requests: 3, tokens: null, used_requests: 3, used_tokens: 0 },
      },
    ],
  })
  t.ok(Date.parse(body.items[0].budget.resets_at) > Date.now())
  t.equal((await policy({ user_daily_requests: null })).body.user_daily_requests, null)
  t.equal((await owner.get(stats, as('ada'))).status, 200)
  t.equal((await owner.get('/v1/account/users')).body.items[0].budget, null)
})

t.test('users with what they have: found by id or name, counted by when it came', async t => {
  const { body: eva } = await owner.post('/v1/keys', { external_id: 'eva', name: 'Dr. Novak' })
  const daysAgo = (days: number): string => lowestIdAt(Date.now() - days * 24 * 3_600_000)
  await insertMemories(backend, eva.key, [
    { text: 'Now.' },
    { text: 'Lately.', id: daysAgo(10) },
    { text: 'Long ago.', id: daysAgo(40) },
    { text: 'Until now.', id: daysAgo(41), expiresAt: Date.now() },
  ])
  const { scope } = await resolveCaller(backend, eva.key)
  await makeExpiryDue(backend, scope.vault)
  const [session] = await insertMemories(backend, eva.key, [{ text: 'Aside.' }], { session: 's' })
  const listed = async (query: string) => (await owner.get(`/v1/account/users?${query}`)).body.items
  t.equal((await listed('q=eva'))[0].memories, undefined)
  const counted = async () => listed('q=novak&counts=true')
  t.match(await counted(), [{ memories: 4, memories_7_days: 2, memories_30_days: 3 }])
  t.match(await counted(), [{ memories: 4 }], 'the same again')
  const client = createTestClient(base, eva.key)
  t.equal((await client.post('/v1/memory/delete-ids', { ids: [session] })).status, 200)
  t.match(await counted(), [{ memories: 3, memories_7_days: 1 }], 'what is deleted counts no more')
  await insertMemories(backend, eva.key, [{ text: 'Aside again.' }], { session: 's' })
  t.equal((await client.send('DELETE', '/v1/memory?session_id=s')).status, 200)
  t.match(await counted(), [{ memories: 3 }], 'nor what is cleared')
})

t.test('tokens of a key: those of model calls, known once a call has ended', async t => {
  const { body: made } = await owner.post('/v1/keys')
  const client = createTestClient(base, made.key)
  const set = await setBudget(made.id, { daily_tokens: tokensOfCall })
  t.match(set, {
    status: 200,
    body: { id: made.id, budget: { requests: null, tokens: 30, resets_at: null } },
  })
  const [openai] = proxyDialects
  const call = async () => {
    const answer = await callModel(base, made.key, openai!, 'hello')
    await answer.text()
    return answer.status
  }
  t.equal(await call(), 200)
  t.equal(await call(), 429)
  t.match((await client.get(stats)).body.error, /30 tokens in 24 hours/)
  await setBudget(made.id, { daily_tokens: 2 * tokensOfCall, daily_requests: 100 })
  t.equal(await call(), 200, 'a raised budget applies at once')
  t.equal(await call(), 429)
  await setBudget(made.id, { daily_tokens: null })
  const { budget } = (await client.get('/v1/account/usage')).body
  t.match(budget, { requests: 100, tokens: null })
  const { items } = (await owner.get('/v1/account/events?action=key.changed')).body
  const none = { daily_requests: null, daily_tokens: null }
  t.match(items.at(-1), { before: none, after: { daily_requests: null, daily_tokens: 30 } })
  t.equal(items.length, 3)
})

t.test('a budget is that of the keys that replace a key and of its clients', async t => {
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'eve' })
  await setBudget(ada.id, { daily_requests: 4 })
  const user = createTestClient(base, ada.key)
  const { body: made } = await user.post('/v1/keys', { rights: 'memory' })
  const codex = createTestClient(base, made.key)
  t.equal((await codex.get(stats)).status, 200)
  const { body: next } = await user.post('/v1/keys/rotate')
  t.equal((await createTestClient(base, next.key).get(stats)).status, 200)
  t.equal((await codex.get(stats)).status, 429)
  t.equal((await owner.get(stats, as('eve'))).status, 429)
  await setBudget(made.id, { daily_requests: 50 })
  t.equal((await createTestClient(base, next.key).get(stats)).status, 200)
  t.match((await owner.get('/v1/keys?external_id=eve')).body.items, [
    { budget: { requests: 50 } },
    { budget: { requests: 50 } },
    { budget: { requests: 50 } },
  ])
})

t.test('a key for users has a budget of its own beside those of the users', async t => {
  const { body: made } = await owner.post('/v1/keys', { rights: 'users' })
  await setBudget(made.id, { daily_requests: 3 })
  const chat = createTestClient(base, made.key)
  for (const user of ['ida', 'joe', 'kim']) t.equal((await chat.get(stats, as(user))).status, 200)
  t.equal((await chat.get(stats, as('leo'))).status, 429)
  t.equal((await owner.get(stats, as('ida'))).status, 200)
})

t.test('400, 403, 404: what is no budget, who sets it, and of which key', async t => {
  const { body: made } = await owner.post('/v1/keys')
  for (const daily_requests of [0, -1, 1.5, 'many', 2_000_000_001])
    t.equal((await setBudget(made.id, { daily_requests })).status, 400)
  t.equal((await setBudget(crypto.randomUUID(), { daily_requests: 1 })).status, 404)
  const client = createTestClient(base, made.key)
  const own = await client.send('PATCH', `/v1/keys/${made.id}`, { body: { daily_requests: 9 } })
  t.equal(own.status, 403)
  t.equal((await client.get('/v1/account/users')).status, 403)
})

t.test('two processes pass a fiftieth more at most, and know of each other’s tokens', async t => {
  const subject = toSubject(hashKey('pepper', 'two processes'))
  const processes = [backend.budgets, new Budgets(backend.postgres.query, backend.log)] as const
  const budget = { subject, requests: 100, tokens: 500, micros: 1_000_000 }
  let passed = 0
  for (let n = 0; n < 200; n++)
    passed += Number((await processes[n % 2]!.consume(budget, 'account')).allowed)
  t.ok(passed >= 90 && passed <= 102, `${passed} passed`)
  const tokens = { ...budget, subject: `${subject}-tokens`, requests: null }
  processes[0].spend([tokens], 600, 0)
  const reported = async () => (await processes[1].usedBy([tokens.subject])).get(tokens.subject)
  await waitUntil('the tokens are reported', async () => (await reported())?.tokens === 600)
  t.equal((await processes[1].consume(tokens, 'account')).allowed, false)
  const dollars = { ...budget, subject: `${subject}-dollars`, requests: null, tokens: null }
  t.equal((await processes[1].consume(dollars, 'account')).allowed, true)
  processes[0].spend([dollars], 600, 1.5)
  const spent = async () => (await processes[1].usedBy([dollars.subject])).get(dollars.subject)
  await waitUntil('the dollars are reported', async () => (await spent())?.micros === 1_500_000)
  t.match(await spent(), { tokens: 0, requests: 0 })
})

t.test(
  'dollars of a user in 30 days: by list prices, told at 80 % and at the end, then a 429',
  async t => {
    t.match((await policy({ user_monthly_dollars: 0.01 })).body, { user_monthly_dollars: 0.01 })
    const { body: webhook } = await owner.post('/v1/account/webhooks', {
      url: 'https://example.com/budgets',
      events: ['budget.warning', 'budget.used_up'],
    })
    const { body: zoe } = await owner.post('/v1/keys', { external_id: 'zoe' })
    const client = createTestClient(base, zoe.key)
    t.equal((await client.get(stats)).status, 200)
    const [openai] = proxyDialects
    await (await callModel(base, zoe.key, openai!, 'hello')).text()
    const budgetOf = async () => (await client.get('/v1/account/usage')).body.budget
    await waitUntil('the call has a price', async () => (await budgetOf()).used_dollars > 0)
    t.match(await budgetOf(), { requests: null, dollars: 0.01 })
    const { budgets } = await resolveCaller(backend, zoe.key)
    const told = async () => {
      await tellBudgets(backend)
      const log = await owner.get(`/v1/account/webhooks/${webhook.id}/deliveries`)
      type Told = { type: string; data: { external_id: string | null } }
      return (log.body.items as Told[])
        .filter(({ data }) => data.external_id === 'zoe')
        .map(({ type, data }) => ({ type, data }))
    }
    t.same(await told(), [], 'below 80 %')
    backend.budgets.spend(budgets, 0, 0.0085)
    await waitUntil('it is told', async () => (await told()).length === 1)
    const data = { external_id: 'zoe', what: 'dollars', limit: 0.01, key_id: zoe.id }
    t.match(await told(), [{ type: 'budget.warning', data }])
    t.equal((await client.get(stats)).status, 200)
    backend.budgets.spend(budgets, 0, 0.005)
    await waitUntil('this, too', async () => (await told()).length === 2)
    t.match((await told())[0], { type: 'budget.used_up', data })
    t.equal((await told()).length, 2, 'each once')
    const refused = await client.get(stats)
    t.match(refused, {
      status: 429,
      body: { error: 'The budget of 0.01 dollars in 30 days is used up' },
    })
    t.ok(Number(refused.headers.get('retry-after')) > 29 * 86_400)
    t.match((await setBudget(zoe.id, { monthly_dollars: 2.5 })).body.budget, { dollars: 2.5 })
    t.equal((await client.get(stats)).status, 200, 'a raised budget applies at once')
    const { items } = (await owner.get('/v1/account/events?action=key.changed')).body
    t.match(items[0], { after: { monthly_dollars: 2.5 } })
    await policy({ user_monthly_dollars: null })
  },
)

t.test('what is counted of a user goes with the user', async t => {
  await policy({ user_daily_requests: 50 })
  for (let n = 0; n < 5; n++) await owner.get(stats, as('max'))
  const { items } = (await owner.get('/v1/account/users?q=max')).body
  const counters = () => countRows(backend, 'budget_points')
  const before = await counters()
  t.equal((await owner.send('DELETE', `/v1/keys/${items[0].key_id}?erase=true`)).status, 200)
  await waitUntil('the counter is gone', async () => (await counters()) < before)
})

t.test('403: one user more than the account may have, also of requests at once', async t => {
  const { users } = (await owner.get('/v1/account/users')).body
  await backend.postgres.query('update accounts set users_max = $1', [users + 2])
  const statuses = await Promise.all(
    ['u1', 'u2', 'u3', 'u4', 'u5'].map(async user => (await owner.get(stats, as(user))).status),
  )
  t.same(statuses.toSorted(), [200, 200, 403, 403, 403])
  t.match(await owner.post('/v1/keys', { external_id: 'u9' }), {
    status: 403,
    body: { error: /has its \d+ users/, hint: /users_max/ },
  })
  t.match((await owner.get('/v1/account/users')).body, { users: users + 2, users_max: users + 2 })
  t.equal((await owner.get(stats, as('ida'))).status, 200, 'those that are there go on')
})
