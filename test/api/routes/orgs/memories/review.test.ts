import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/memories`
for (const label of ['a', 'b', 'c', 'x', 'y', 'z']) {
  await admin.post(`/v1/orgs/${team.org}/tags`, { label, question: `Is it ${label}?` })
}
const unsure = { author: 'ann', reviewed: false }

const queued = async (query = ''): Promise<string[]> => {
  const { status, body } = await admin.get(`${path}/review${query}`)
  if (status !== 200) throw new Error(`${status}`)
  return body.review.map(({ mem_id }: { mem_id: string }) => mem_id)
}

t.test('200: the queue holds what nobody reviewed and is not sure', async t => {
  const [low, middle, high, seen] = await seedTeamMemories(backend, team, [
    { text: 'low', tags: ['a'], confidence: 0.1, ...unsure, acquiredAt: 3_000 },
    { text: 'middle', confidence: 0.59, ...unsure, acquiredAt: 5_000 },
    { text: 'high', confidence: 0.6, ...unsure, acquiredAt: 4_000 },
    { text: 'seen', confidence: 0.2, author: 'ann', reviewed: true },
  ])
  const { body } = await admin.get(`${path}/review`)
  t.match(body, { org_id: team.org, threshold: 0.6, count: 2 })
  t.match(body.review[0], {
    mem_id: low,
    text: 'low',
    tags: ['a'],
    confidence: 0.1,
    author: 'ann',
    acquired_at: 3_000,
    pass: { pass1: null, pass2: null, pass3: null },
  })
  t.same(await queued(), [low, middle])
  t.same(await queued('?sort=newest'), [middle, low])
  t.same(await queued('?threshold=0.7'), [low, middle, high])
  t.same(await queued('?threshold=0.1'), [])
  t.same(await queued('?limit=1'), [low])
  t.same(await queued('?tag=a'), [low])
  t.same(await queued('?author=ann&sort=newest'), [middle, low])
  t.same(await queued('?author=bob'), [])
  t.notOk((await queued('?threshold=1')).includes(seen!))
})

t.test('200: what the admin is not sure of waits like the rest', async t => {
  const { body } = await admin.post(path, { text: 'perhaps', confidence: 0.3 })
  t.ok((await queued()).includes(body.mem_id))
  await admin.post(`${path}/${body.mem_id}/review`, { action: 'dismiss' })
})

t.test('200: approve and dismiss take it out of the queue, undo puts it back', async t => {
  const [id, other] = await seedTeamMemories(backend, team, [
    { text: 'doubtful', tags: ['x'], confidence: 0.2, ...unsure },
    { text: 'doubted', tags: ['y'], confidence: 0.2, ...unsure },
  ])
  const decide = (body: unknown, memory = id) => admin.post(`${path}/${memory}/review`, body)
  t.match(await decide({ action: 'approve', tags: ['unknown'] }), {
    status: 400,
    body: { error: /no tag "unknown"/, hint: /a, b/ },
  })
  t.equal((await decide({ action: 'approve', tags: ['*'] })).status, 400)
  t.match(await decide({ action: 'approve', tags: ['b', 'a'] }), {
    status: 200,
    body: { action: 'approve', mem_id: id, tags: ['a', 'b'], reviewed: true, confidence: 0.2 },
  })
  t.match(await decide({ action: 'dismiss', tags: ['z'] }, other), {
    status: 200,
    body: { action: 'dismiss', tags: ['y'], reviewed: true },
  })
  const left = await queued()
  t.notOk(left.includes(id!) || left.includes(other!))
  t.equal((await decide({ action: 'approve' })).status, 409, 'somebody has decided')

  t.match(await admin.post(`${path}/${id}/review/undo`), {
    status: 200,
    body: { tags: ['x'], reviewed: false },
  })
  t.ok((await queued()).includes(id!))
  t.equal((await admin.post(`${path}/${id}/review/undo`)).status, 409)
  t.match(await decide({ action: 'dismiss' }), { status: 200, body: { tags: ['x'] } })
  const { body } = await admin.get(`${path}/${id}/audit`)
  t.same(
    body.events.map(({ action }: { action: string }) => action).sort(),
    ['create', 'retag', 'retag', 'update', 'update', 'update'].sort(),
  )

  await admin.send('PATCH', `${path}/${other}`, { body: { tags: ['changed'] } })
  t.equal((await admin.post(`${path}/${other}/review/undo`)).status, 409, 'its tags have changed')
})

t.test('200: approved with better words, which undo leaves', async t => {
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'the flor is 3', tags: ['x'], confidence: 0.2, pending: true, ...unsure },
  ])
  const decide = (body: object) => admin.post(`${path}/${id}/review`, body)
  const text = 'the floor is 3'
  t.equal((await decide({ action: 'approve', text: ' ' })).status, 400)
  t.equal((await decide({ action: 'approve', text, tags: ['unknown'] })).status, 400)
  const waits = async () =>
    (await admin.get(`${path}/review`)).body.review.find(
      ({ mem_id }: { mem_id: string }) => mem_id === id,
    )
  t.match(await waits(), { text: 'the flor is 3', pending: true }, 'refused, nothing is changed')
  t.match(await decide({ action: 'approve', text, tags: ['a'] }), {
    status: 200,
    body: { text, tags: ['a'], reviewed: true, pending: false, author: 'ann' },
  })
  t.equal((await decide({ action: 'approve', text: 'later words' })).status, 409)
  const { revisions } = (await admin.get(`${path}/${id}/history`)).body
  t.match(revisions, [
    { kind: 'review', after: { text } },
    { kind: 'edit', before: { text: 'the flor is 3' } },
    { kind: 'add' },
  ])
  t.equal((await admin.post(`${path}/${id}/review/undo`)).status, 200)
  t.match(await waits(), { text, tags: ['x'], pending: true })
  const dismissed = await decide({ action: 'dismiss', text: 'other' })
  t.match(dismissed, { status: 200, body: { text } })
  t.match(dismissed.headers.get('x-memory-ignored-fields'), /text/)
})

t.test('200: an admin changes words, and says whether they wait on', async t => {
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'teh', tags: ['x'], confidence: 0.2, pending: true, ...unsure },
  ])
  const patch = (body: object) => admin.send('PATCH', `${path}/${id}`, { body })
  const waiting = { text: 'the', tags: ['a'], reviewed: false, pending: true }
  t.match((await patch({ text: 'the', tags: ['a'], reviewed: false })).body, waiting)
  t.ok((await queued()).includes(id!))
  t.match((await patch({ text: 'then' })).body, { pending: false, reviewed: false })
})

t.test('200: two admins at once decide once', async t => {
  const [id] = await seedTeamMemories(backend, team, [{ text: 'raced', confidence: 0, ...unsure }])
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, n) =>
      admin.post(`${path}/${id}/review`, { action: 'approve', tags: [['a', 'b', 'c', 'x'][n]] }),
    ),
  )
  t.same(answers.map(({ status }) => status).sort(), [200, 409, 409, 409])
})

t.test('200: one request sent again under its Idempotency-Key decides once', async t => {
  const [id] = await seedTeamMemories(backend, team, [{ text: 'again', confidence: 0, ...unsure }])
  const send = () =>
    admin.post(`${path}/${id}/review`, { action: 'dismiss' }, { 'idempotency-key': 'once' })
  const first = await send()
  t.equal(first.status, 200)
  t.same((await send()).body, first.body)
})

t.test('200: reject removes it; it can be restored', async t => {
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'wrong', confidence: 0.2, ...unsure },
  ])
  const headers = { 'idempotency-key': 'reject-once' }
  const rejected = await admin.post(`${path}/${id}/review`, { action: 'reject' }, headers)
  t.match(rejected, { status: 200, body: { action: 'reject', mem_id: id, text: 'wrong' } })
  t.match(await admin.post(`${path}/${id}/review`, { action: 'reject' }, headers), {
    status: 200,
    body: { mem_id: id },
  })
  t.notOk((await queued()).includes(id!))
  t.equal((await admin.post(`${path}/${id}/review`, { action: 'reject' })).status, 404)
  const { body } = await admin.get(`${path}/${id}/audit`)
  t.same(
    body.events.map(({ action }: { action: string }) => action),
    ['delete', 'create'],
  )
  t.match(await admin.post(`${path}/${id}/restore`), { status: 200, body: { text: 'wrong' } })
  t.equal((await admin.post(`${path}/${id}/review`, { action: 'reject' })).status, 200)
  const undone = { status: 200, body: { text: 'wrong', reviewed: false } }
  t.match(await admin.post(`${path}/${id}/review/undo`), undone)
  t.ok((await queued()).includes(id!))
  await admin.send('DELETE', `${path}/${id}`)
  t.equal((await admin.post(`${path}/${id}/review/undo`)).status, 404, 'no decision removed it')
})
