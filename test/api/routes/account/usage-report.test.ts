import t from 'tap'
import { orgBillingHash } from '#shared/org/base/org-usage.postgres.ts'
import { rollUpKeyUsage } from '#shared/billing/usage-sums.postgres.ts'
import { insertPastCall, rewindUsageRollUp } from '#test/support/checks/alter-jobs.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { allJobsBut, readPages, startService } from '#test/support/start/start-service.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'

await passMidnight()
// Without the sweep, which rolls usage up.
const { backend, base, newClient } = await startService(t, { jobs: allJobsBut('sweep') })
await rewindUsageRollUp(backend, 'usage_rolled', 40)

const path = '/v1/account/usage/report'
const million = 1_000_000
const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)

const { key, ...owner } = await newClient('owner@example.com')
const caller = await resolveCaller(backend, key)
const ada = (await owner.post('/v1/keys', { external_id: 'ada', name: 'Ada' })).body
const adaCaller = await resolveCaller(backend, ada.key)
const call = (of: typeof caller, ago: number, use: Parameters<typeof insertPastCall>[3]) =>
  insertPastCall(backend, of, ago, use)

await call(caller, 3, { model: 'openai/gpt-5', input: million, cached: million / 2, session: 'a' })
await call(caller, 3, { input: 3, memory: 7 })
await call(adaCaller, 2, { model: 'openai/gpt-5', output: million, session: 'b' })
await call(adaCaller, 0, { model: 'lab/own', input: 5, output: 6, session: 'b' })
const other = await newClient('other@example.com')
await call(await resolveCaller(backend, other.key), 2, { model: 'openai/gpt-5', input: 99 })

const report = async (query: string) => {
  const { status, body } = await owner.get(path + query)
  t.equal(status, 200, JSON.stringify(body))
  return body
}
const gpt5 = { input: 1.25, cached: 0.125, output: 10 }
const whole = {
  requests: 4,
  input_tokens: million + 8,
  cached_tokens: million / 2,
  output_tokens: million + 6,
  memory_tokens: 7,
  cost_usd: (gpt5.input + gpt5.cached) / 2 + gpt5.output,
  unpriced_tokens: 11,
}

t.test('200: the account by each group, and the same once days are rolled up', async t => {
  const reports = () =>
    Promise.all(
      ['model', 'user', 'day', 'session', 'key', 'user,day'].map(async group => {
        const { total, items, prices } = await report(`?group=${group}`)
        return { total, items, prices }
      }),
    )
  const before = await reports()
  const [byModel, byUser, byDay, bySession, byKey, byBoth] = before
  t.same(byModel!.total, whole)
  t.match(byModel!.prices, [{ model: 'openai/gpt-5', ...gpt5, source: /^http/, date: /^20/ }])
  t.match(byModel!.items, [
    { model: 'openai/gpt-5', requests: 2, cost_usd: whole.cost_usd, unpriced_tokens: 0 },
    { model: 'lab/own', requests: 1, cost_usd: null, unpriced_tokens: 11 },
    { model: null, requests: 1, input_tokens: 3, cost_usd: 0, unpriced_tokens: 0 },
  ])
  t.match(byUser!.items, [
    { external_id: 'ada', cost_usd: gpt5.output, unpriced_tokens: 11, budget: null },
    { external_id: null, cost_usd: (gpt5.input + gpt5.cached) / 2, budget: null },
  ])
  t.same(
    byDay!.items.map((item: { day: string; requests: number }) => [item.day, item.requests]),
    [
      [day(0), 1],
      [day(2), 1],
      [day(3), 2],
    ],
  )
  t.same(
    bySession!.items.map((item: { session_id: string }) => item.session_id),
    ['b', 'a', null],
  )
  t.match(byKey!.items, [
    { key_id: ada.id, key_name: 'Ada', masked_key: /^mk_.*…/, org_id: null, requests: 2 },
    { key_id: /-/, requests: 2 },
  ])
  t.match(byBoth!.items[0], { day: day(0), external_id: 'ada', cost_usd: null })
  t.equal(await rollUpKeyUsage(backend.postgres.query), 40)
  t.same(await reports(), before)
})

t.test('200: periods, and one key, user or model', async t => {
  t.match((await report(`?start=${day(2)}&end=${day(2)}`)).total, { requests: 1, cost_usd: 10 })
  t.match((await report(`?start=${day(3)}T00:00:01Z`)).total, { requests: 2 })
  t.match((await report(`?external_id=%20ada`)).total, { requests: 2 })
  t.match((await report(`?key_id=${ada.id}&group=session`)).total, { requests: 2 })
  t.match((await report('?model=lab/own')).total, { requests: 1, cost_usd: null })
  t.match(await report('?external_id=nobody'), { total: { requests: 0, cost_usd: 0 }, items: [] })
})

t.test('200: pages hold each row once, and totals of all', async t => {
  for (const group of ['model', 'day', 'key,model,day', 'session']) {
    const [all] = await readPages(owner, `${path}?group=${group}`)
    const pages = await readPages(owner, `${path}?group=${group}&limit=1`)
    t.same(pages.flat(), all, group)
    t.equal(pages.length, all!.length)
  }
  const first = await report('?limit=1')
  t.same(first.total, whole)
  const moved = `?limit=1&group=day&cursor=${encodeURIComponent(first.next_cursor)}`
  t.equal((await owner.get(path + moved)).status, 400, 'a cursor of another list')
})

t.test('200: budgets stand with their keys and users', async t => {
  await owner.send('PATCH', `/v1/keys/${ada.id}`, { body: { daily_requests: 5 } })
  const budget = { requests: 5, tokens: null }
  t.match((await report('?group=user')).items[0], { external_id: 'ada', budget })
  t.match((await report('?group=key,model')).items[0], { key_id: /-/, model: 'openai/gpt-5' })
  const { items } = await report('?group=key')
  t.match(
    items.find(({ key_id }: { key_id: string }) => key_id === ada.id),
    { budget },
  )
})

t.test('200: members and the pipeline of an organization belong to its account', async t => {
  const team = await buildTeam(backend)
  const member = await team.addMember('ada@example.com')
  const { account, org } = team
  const memberCaller = await resolveCaller(backend, member)
  await call(memberCaller, 0, { model: 'openai/gpt-5', output: 10, session: 'a divorce' })
  const pipeline = { account, keyHash: orgBillingHash(org), scope: memberCaller.scope }
  await insertPastCall(backend, pipeline, 0, { model: 'openai/gpt-5', output: 5 })
  const admin = createTestClient(base, team.adminKey)
  const { status, body } = await admin.get(`${path}?group=key`)
  t.equal(status, 200)
  t.match(body.items, [
    { key_id: /-/, org_id: org, output_tokens: 10 },
    { key_id: null, key_name: null, masked_key: null, org_id: org, output_tokens: 5 },
  ])
  const sessions = (await admin.get(`${path}?group=key,session`)).body
  t.match(sessions.items[0], { org_id: org, session_id: null, output_tokens: 10 })
  t.notMatch(JSON.stringify(sessions), 'divorce', 'a name of a member’s session')
  const asMember = createTestClient(base, member)
  t.equal((await asMember.get(path)).status, 403)
})

t.test('refused: keys of users, other groups, and periods that are too long', async t => {
  t.equal((await createTestClient(base, ada.key).get(path)).status, 403)
  t.equal((await createTestClient(base, `${key}:read`).get(path)).status, 403)
  t.equal((await createTestClient(base).get(path)).status, 401)
  for (const [query, error] of [
    ['?group=kind', /group must be/],
    [`?start=${day(1)}&end=${day(3)}`, /lies after/],
    ['?start=2020-01-01', /at most 366 days/],
    [`?group=session&start=${day(40)}`, /by session has at most 31 days/],
    ['?key_id=x', /key_id/],
    ['?external_id=null', /external_id/],
  ] as const)
    t.match(await owner.get(path + query), { status: 400, body: { error } }, query)
})
