import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

await passMidnight()
const { backend, base, model, newTeam } = await startTeamService(t)
const dayMs = 24 * 3600 * 1000
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

t.test('200: what the team knows by tag and day, who said it, what waits and costs', async t => {
  const acme = await newTeam(['finance', 'launch'])
  const path = `/v1/orgs/${acme.org}/overview`
  const at = (days: number) => ({ acquiredAt: Date.now() - days * dayMs })
  await seedTeamMemories(backend, acme, [
    { text: 'support phone: 100', ...at(0) },
    { text: 'budget: a tenth less', tags: ['finance'], ...at(3) },
    { text: 'floor: three', tags: ['finance', 'launch'], ...at(3) },
    { text: 'logo: blue', tags: ['brand'], confidence: 0.3, reviewed: false, ...at(3) },
    { text: 'name: Acme', tags: ['finance'], ...at(200) },
  ])
  await acme.share('Fact: launch: in May #launch')
  // Contradicts a reviewed one: no member sees it yet.
  await acme.share('Fact: support phone: 200')

  const { status, body } = await acme.admin.get(path)
  t.equal(status, 200)
  const today = dayOf(Date.now())
  t.equal(body.since, Date.parse(today) - 90 * dayMs)
  const total = { memories: 6, untagged: 1, by_tag: { finance: 3, launch: 2, brand: 1 }, other: 0 }
  t.same(body.total, total)
  t.same(body.by_day, [
    {
      day: dayOf(Date.now() - 3 * dayMs),
      memories: 3,
      untagged: 0,
      by_tag: { finance: 2, launch: 1, brand: 1 },
      other: 0,
    },
    {
      day: today,
      memories: 2,
      untagged: 1,
      by_tag: { finance: 0, launch: 1, brand: 0 },
      other: 0,
    },
  ])
  const queue = (await acme.admin.get(`/v1/orgs/${acme.org}/memories/review`)).body
  t.equal(body.review.waiting, queue.count)
  t.equal(body.review.waiting, 2)
  t.equal(dayOf(body.review.oldest_at), dayOf(Date.now() - 3 * dayMs))
  t.match(body, {
    notice: null,
    pipeline: { state: 'running', waiting: 0, given_up: 0 },
    members: {
      count: 1,
      with_key: 1,
      contributors: [{ team_member_id: 'ada@example.com', statements: 2 }],
    },
    defined_tags: 2,
  })
  t.equal(dayOf(body.members.contributors[0].last_said_at), today)
  const usage = (await acme.admin.get(`/v1/orgs/${acme.org}/usage`)).body
  t.same(body.usage_today, usage.total)
  t.ok(body.usage_today.calls > 0)

  const one = (await acme.admin.get(`${path}?tags=1&since=${dayOf(Date.now() - 250 * dayMs)}`)).body
  t.match(one.total, { by_tag: { finance: 3 }, other: 2, untagged: 1 })
  t.equal(one.by_day.length, 3)
  t.same(
    (await acme.admin.get(`${path}?since=${Date.now() + dayMs}`)).body.members.contributors,
    [],
    'none has said anything yet',
  )
})

t.test('200: of a new team, and of one whose models fail', async t => {
  const { admin, path } = await buildOrg(backend, base)
  t.match((await admin.get(`${path}/overview`)).body, {
    total: { memories: 0, untagged: 0, by_tag: {}, other: 0 },
    by_day: [],
    review: { waiting: 0, oldest_at: null },
    notice: /no key for openai/,
    members: { count: 0, with_key: 0, last_used_at: null, contributors: [] },
    defined_tags: 0,
  })
  const acme = await newTeam()
  model.failAll(401)
  t.teardown(() => model.failAll(null))
  await acme.say('Fact: launch: in May')
  const overview = async () => (await acme.admin.get(`/v1/orgs/${acme.org}/overview`)).body
  await waitUntil('it is told', async () => (await overview()).pipeline.state === 'faulty')
  t.match(await overview(), { notice: /waits/, pipeline: { waiting: 1 } })
})

t.test('400, 401, 404: for no time, a member, and another admin', async t => {
  const acme = await newTeam()
  const path = `/v1/orgs/${acme.org}/overview`
  t.equal((await acme.admin.get(`${path}?since=mk_x`)).status, 400)
  t.equal((await acme.admin.get(`${path}?tags=none`)).status, 400)
  const { admin } = await buildOrg(backend, base)
  t.equal((await admin.get(path)).status, 404)
  const response = await fetch(base + path, { headers: { authorization: `Bearer ${acme.key}` } })
  t.equal(response.status, 401)
})
