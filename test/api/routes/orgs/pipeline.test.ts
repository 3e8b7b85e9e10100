import t from 'tap'
import { removeProviderKey, storeProviderKey } from '#shared/access/provider-key.ts'
import { wakePipeline } from '#shared/org/base/pipeline-state.postgres.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

await passMidnight()
const { backend, base, model, newTeam, finished } = await startTeamService(t)
const { query } = backend.postgres

t.beforeEach(() => model.failAll(null))

const pipelineOf = async (acme: WorkingTeam) =>
  (await acme.admin.get(`/v1/orgs/${acme.org}`)).body.pipeline

/** Its next probe is due at once. */
const recovers = (acme: WorkingTeam) =>
  waitUntil('nothing waits', async () => {
    await wakePipeline(query, acme.org)
    return (await pipelineOf(acme)).waiting === 0
  })

t.test('cost is billed to the organization and shown to its admin alone', async t => {
  const acme = await newTeam(['finance'])
  await acme.share('Fact: launch: in May')
  await acme.share('Fact: launch: in June')
  const own = await createTestClient(base, acme.key).get('/v1/account/usage')
  t.same(Object.keys(own.body.by_model), [], 'a member is shown no call of the pipeline')
  const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/usage`)
  t.match(body, {
    total: { calls: 5, input_tokens: 500, cached_input_tokens: 200, output_tokens: 100 },
    by_pass: { extract: { calls: 2 }, tag: { calls: 2 }, reconcile: { calls: 1 } },
    by_member: { 'ada@example.com': { calls: 5 } },
  })
  t.match(body.total, { cost_usd: null, unpriced_tokens: 600 })
  t.equal(Object.keys(body.by_day).length, 1)
  const { rows } = await query<{ calls: number }>(
    `select count(*)::int as calls from usage_events where account = $1 and kind like 'org-%' and model is not null`,
    [acme.account],
  )
  t.equal(rows[0]!.calls, 5, 'and the account pays for them')
})

t.test('what calls cost is told where their model has a price', async t => {
  const acme = await newTeam()
  const models = { extract_model: 'gpt-4', classify_model: 'gpt-5' }
  await acme.admin.send('PATCH', `/v1/orgs/${acme.org}`, { body: models })
  await acme.share('Fact: launch: in May')
  const { total, by_model } = (await acme.admin.get(`/v1/orgs/${acme.org}/usage`)).body
  const { input_tokens, output_tokens } = by_model['openai/gpt-4']
  t.equal(by_model['openai/gpt-4'].cost_usd, (input_tokens * 30 + output_tokens * 60) / 1e6)
  t.match(total, { unpriced_tokens: 0 })
  t.ok(total.cost_usd >= by_model['openai/gpt-4'].cost_usd)
})

t.test('a period of usage that is no time is refused', async t => {
  const acme = await newTeam([])
  for (const query of ['start=mk_x', 'end=2026-02-30', 'start=9007199254740991', 'end=%20'])
    t.match(await acme.admin.get(`/v1/orgs/${acme.org}/usage?${query}`), { status: 400 }, query)
  const period = 'start=2026-01-01&end=1782863999999'
  t.match((await acme.admin.get(`/v1/orgs/${acme.org}/usage?${period}`)).body, {
    period: { start: '2026-01-01T00:00:00.000Z', end: '2026-06-30T23:59:59.999Z' },
  })
})

t.test('a member reads nothing of a hidden memory in their own usage', async t => {
  const acme = await newTeam(['people'])
  await acme.defineRole('Finance', ['finance'])
  const usageAfter = async (name: string, hidden: boolean) => {
    const bob = await acme.addMember(name, ['Finance'])
    if (hidden) await acme.share(`Fact: pay of ${name}: 90 #people`)
    await acme.share(`Fact: pay of ${name}: 70 #people`, { as: bob })
    const { body } = await createTestClient(base, bob).get('/v1/account/usage?by_day=true')
    const { total_requests, total_input_tokens, total_output_tokens } = body
    return { total_requests, total_input_tokens, total_output_tokens }
  }
  t.same(await usageAfter('bo1@example.com', true), await usageAfter('bo2@example.com', false))
})

t.test(
  'a model that is down costs no tries; the admin reads why; it goes on by itself',
  async t => {
    const acme = await newTeam()
    const begun = Date.now()
    model.failAll(503)
    for (const fact of ['a: 1', 'b: 2']) await acme.say(`Fact: ${fact}`)
    await waitUntil('the pipeline rests', async () => (await pipelineOf(acme)).state === 'faulty')
    t.match(await pipelineOf(acme), {
      state: 'faulty',
      last_error: /openai\/large did not answer \(status 503\)/,
      waiting: 2,
      given_up: 0,
    })
    t.ok((await pipelineOf(acme)).since >= begun - 1_000)
    model.failAll(null)
    await recovers(acme)
    t.match(await pipelineOf(acme), { state: 'running', last_error: null, waiting: 0 })
  },
)

t.test('without a key the creation says so, and what was said waits for it', async t => {
  const acme = await newTeam()
  const { body } = await acme.admin.post('/v1/orgs', {
    name: 'Another team',
    processor_provider: 'anthropic',
  })
  t.match(body.notice, /no key for anthropic.*provider-keys\/anthropic/)
  const actor = { account: acme.account, actor: 'test' }
  const keys = { query, seal: backend.seal }
  await removeProviderKey(keys, actor, 'openai')
  const noticeOf = async () =>
    (await acme.admin.get('/v1/orgs')).body.orgs.find(
      ({ org_id }: { org_id: string }) => org_id === acme.org,
    ).notice
  t.match(await noticeOf(), /no key for openai: nothing is shared/)
  const before = model.calls.length
  await acme.say('Fact: floor: 3')
  await waitUntil('the pipeline rests', async () => (await pipelineOf(acme)).state === 'faulty')
  t.match((await pipelineOf(acme)).last_error, /no key for openai/)
  t.equal(model.calls.length, before, 'no model is called')
  await storeProviderKey(keys, actor, 'openai', 'sk-0123456789abcdef')
  t.match(await noticeOf(), /has no key for openai: what members say waits/, 'until it is tried')
  await recovers(acme)
  t.equal(await noticeOf(), null)
  t.match(await acme.memories(), [{ text: 'floor: 3' }])
})

t.test('models are tried with the key of the account, or with one before it is stored', async t => {
  const { admin, account } = await newTeam()
  const path = '/v1/account/provider-keys'
  const check = (provider: string, body: object) => admin.post(`${path}/${provider}/check`, body)
  const models = ['large', 'openai/small']
  const before = model.calls.length
  t.match(await check('openai', { models }), { status: 200, body: { provider: 'openai', models } })
  t.same(
    model.calls
      .slice(before)
      .map(call => call.model)
      .toSorted(),
    ['large', 'small'],
  )
  await check('openai', { models: ['large'], key: 'sk-not-yet-stored' })
  t.equal(model.calls.at(-1)!.key, 'sk-not-yet-stored')
  model.failAll(401)
  t.match(await check('openai', { models }), {
    status: 502,
    body: { error: /openai\/(large|small) did not answer \(status 401\)/, hint: /provider key/ },
  })
  t.match(await check('mistral', { models }), {
    status: 400,
    body: { error: /no key for mistral/ },
  })
  t.equal((await check('nobody', { models })).status, 404)
  const { processors } = (await admin.get(path)).body
  const named = (name: string) =>
    processors.find(({ provider }: { provider: string }) => provider === name)
  t.match(named('openai'), {
    needs_key: true,
    extract_model: 'gpt-5',
    classify_model: 'gpt-5-mini',
  })
  t.equal(named('ollama').needs_key, false)
  const { rows } = await query('select 1 from usage_events where account = $1', [account])
  t.same(rows, [], 'no bill')
})

t.test('paused, and over its budget, what was said waits', async t => {
  const acme = await newTeam()
  const path = `/v1/orgs/${acme.org}`
  const paused = await acme.admin.send('PATCH', path, { body: { pipeline_paused: true } })
  t.match(paused.body.pipeline, { state: 'paused', paused: true })
  const turn = await acme.say('Fact: floor: 3')
  await waitUntil('it waits', async () => {
    const { rows } = await query<{ later: boolean }>(
      `select start_after > now() + interval '1 minute' as later from pgboss.job
         where id = $1 and name = 'org-extract'`,
      [turn],
    )
    return rows[0]?.later === true
  })
  await acme.admin.send('PATCH', path, { body: { pipeline_paused: false } })
  await finished(turn)

  const spent = await acme.admin.send('PATCH', path, { body: { daily_token_budget: 10 } })
  t.match(spent.body.pipeline, { state: 'over_budget', daily_token_budget: 10, paused: false })
  const next = await acme.say('Fact: floor: 4')
  await waitUntil('it waits', async () => {
    const { rows } = await query<{ later: boolean }>(
      `select start_after > now() as later from pgboss.job
         where id = $1 and name = 'org-extract'`,
      [next],
    )
    return rows[0]?.later === true
  })
  await acme.admin.send('PATCH', path, { body: { daily_token_budget: null } })
  await finished(next)
  t.match(await pipelineOf(acme), { state: 'running', daily_token_budget: null })
})

t.test('turns that were given up are given back by the admin', async t => {
  const acme = await newTeam()
  const { id: done } = await acme.share('Fact: door: 2')
  const turnsIn = async (state: string): Promise<string[]> => {
    const { body } = await acme.admin.get(`/v1/orgs/${acme.org}/debug/passes?state=${state}`)
    for (const pass of body.passes) t.equal(pass.state, state)
    return body.passes.map((pass: { turn_id: string }) => pass.turn_id)
  }
  model.scriptAnswers('extract', ...Array.from({ length: 30 }, () => 'no json'))
  const turn = await acme.say('Fact: floor: 3')
  await waitUntil('it is given up', async () => {
    await makeJobsDue(backend, 'org-extract', [turn])
    return (await pipelineOf(acme)).given_up === 1
  })
  t.match(await pipelineOf(acme), { state: 'running', waiting: 0, given_up: 1 })
  t.same(await turnsIn('given_up'), [turn])
  t.same(await turnsIn('done'), [done])
  t.same(await turnsIn('waiting'), [])
  model.scriptAnswers('extract')
  const { body } = await acme.admin.post(`/v1/orgs/${acme.org}/pipeline/redrive`)
  t.equal(body.redriven, 1)
  await finished(turn)
  t.match(await pipelineOf(acme), { waiting: 0, given_up: 0 })
  t.same(await turnsIn('given_up'), [])
  t.same(await turnsIn('done'), [turn, done])
})

t.test('turns of one team ask their models side by side', async t => {
  const acme = await newTeam()
  await acme.share('Fact: a0: 0')
  let [underWay, most] = [0, 0]
  const slow = async ({ userPrompt }: { userPrompt: { facts: { fact: number }[] } }) => {
    most = Math.max(most, ++underWay)
    // One after the other, no second one is ever asked meanwhile.
    await waitUntil('another one is asked', () => most > 1, 30_000).catch(() => {})
    underWay--
    const decisions = userPrompt.facts.map(({ fact }) => ({
      fact,
      action: 'ADD',
      memory: '',
      text: '',
    }))
    return JSON.stringify({ decisions })
  }
  model.scriptAnswers('reconcile', ...Array.from({ length: 100 }, () => slow))
  const turns = await Promise.all(
    Array.from({ length: 12 }, (_, n) => acme.say(`Fact: a0 of ${n}: ${n}`)),
  )
  for (const turn of turns) await finished(turn)
  t.ok(most > 1, `${most} at a time`)
  t.equal((await acme.memories()).length, 13)
  model.scriptAnswers('reconcile')
})
