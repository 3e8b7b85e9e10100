import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}`
const reviewers = `${path}/reviewers`
const email = 'rita@example.com'

const doubtful = (text: string) => ({ text, confidence: 0.3, reviewed: false })
const [first, second] = await seedTeamMemories(backend, team, [
  doubtful('The launch is in May'),
  doubtful('The office moves to Graz'),
])

const made = await admin.post(reviewers, { email: 'Rita@Example.com' })
const rita = createTestClient(base, made.body.reviewer_key)

t.test('201: a reviewer with a credential that is shown once, told as an event', async t => {
  t.match(made, {
    status: 201,
    body: { email, created_by: team.email, reviewer_key: /^mk_admin_/ },
  })
  const { body } = await admin.get(reviewers)
  t.match(body.reviewers, [{ reviewer_id: made.body.reviewer_id, email, masked_key: /…/ }])
  t.notMatch(JSON.stringify(body), made.body.reviewer_key)
  t.match((await admin.get('/v1/account/events')).body.items[0], {
    action: 'reviewer.created',
    actor: team.email,
    before: null,
    after: { email },
    org_id: team.org,
  })
  t.match(await admin.post(reviewers, { email }), { status: 409 })
  const sent = { 'idempotency-key': 'once' }
  const [one, again] = [
    await admin.post(reviewers, { email: 'ron@example.com' }, sent),
    await admin.post(reviewers, { email: 'ron@example.com' }, sent),
  ]
  t.equal(again.body.reviewer_id, one.body.reviewer_id)
})

t.test('200: a reviewer sees the queue and decides under their name', async t => {
  t.match((await rita.get('/v1/orgs')).body.orgs, [{ org_id: team.org, access: 'reviewer' }])
  t.match((await admin.get('/v1/orgs')).body.orgs, [{ org_id: team.org, access: 'admin' }])
  t.match(await rita.get(`${path}/memories/review`), { status: 200, body: { count: 2 } })
  t.match(await rita.get(`${path}/tags`), { status: 200, body: { tags: [] } })

  const decide = (id: string, action: string) =>
    rita.post(`${path}/memories/${id}/review`, { action })
  t.match(
    await rita.post(`${path}/memories/${first}/review`, {
      action: 'approve',
      text: 'my own words',
    }),
    { status: 403, body: { error: /does not change the words/, hint: /admin/ } },
  )
  t.match(await decide(first!, 'approve'), { status: 200, body: { reviewed: true } })
  t.match(await decide(second!, 'reject'), { status: 200 })
  t.match(await rita.post(`${path}/memories/${first}/review/undo`), { status: 200 })
  for (const id of [first, second]) {
    const { events } = (await rita.get(`${path}/memories/${id}/audit`)).body
    t.equal(events[0].actor, email)
    t.equal((await rita.get(`${path}/memories/${id}/history`)).status, 200)
  }
})

const allowed = new Set([
  'GET /v1/orgs',
  'GET /v1/orgs/:orgId/tags',
  'GET /v1/orgs/:orgId/memories/review',
  'POST /v1/orgs/:orgId/memories/:memId/review',
  'POST /v1/orgs/:orgId/memories/:memId/review/undo',
  'GET /v1/orgs/:orgId/memories/:memId/audit',
  'GET /v1/orgs/:orgId/memories/:memId/history',
])

t.test('401: a reviewer opens nothing else that asks for a credential', async t => {
  const key = made.body.reviewer_key as string
  for (const { method, path: route, auth } of Object.values(contractDocument.endpoints)) {
    if (auth.length === 0 || allowed.has(`${method} ${route}`)) continue
    const address = route
      .replace(':orgId', team.org)
      .replace(':memId', first!)
      .replaceAll(/(?<=\/):[a-zA-Z]+/g, made.body.reviewer_id)
    const response = await fetch(base + address, {
      method,
      headers: { 'x-admin-key': key, 'content-type': 'application/json' },
      ...(method !== 'GET' && method !== 'DELETE' && { body: '{}' }),
    })
    t.equal(response.status, 401, `${method} ${route}`)
    await response.body?.cancel()
  }
})

t.test('404: not of another organization, be it of the same admin', async t => {
  const { body: other } = await admin.post('/v1/orgs', { name: 'Other' })
  const foreign = await buildTeam(backend)
  for (const org of [other.org_id, foreign.org, crypto.randomUUID()]) {
    t.equal((await rita.get(`/v1/orgs/${org}/memories/review`)).status, 404)
    t.equal((await rita.get(`/v1/orgs/${org}/tags`)).status, 404)
    const decided = await rita.post(`/v1/orgs/${org}/memories/${first}/review`, {
      action: 'approve',
    })
    t.equal(decided.status, 404)
  }
  t.equal((await createTestClient(base, foreign.adminKey).get(reviewers)).status, 404)
})

t.test('200: one who is removed opens nothing from the next request on', async t => {
  const id = made.body.reviewer_id as string
  t.match(await admin.send('DELETE', `${reviewers}/${id}`), { status: 200, body: { id } })
  t.equal((await rita.get(`${path}/memories/review`)).status, 401)
  t.equal((await admin.send('DELETE', `${reviewers}/${id}`)).status, 404)
  t.match((await admin.get('/v1/account/events')).body.items[0], {
    action: 'reviewer.deleted',
    before: { email },
    after: null,
  })
})
