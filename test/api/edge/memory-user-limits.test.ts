import t from 'tap'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

// The windows stand still: a busy machine may need longer than one for its requests.
const { now } = Date
const begunAt = now()
Date.now = () => begunAt
t.teardown(() => (Date.now = now))

const backend = await createTestBackend(t, { env: { RATE_LIMITS: 'on' } })
const { base } = await startTestApi(t, backend)
const path = '/v1/memory/stats'
const as = (user: string) => ({ 'x-memory-user': user })

t.test('429: a user who asks too much stops neither others nor the owner', async t => {
  const owner = createTestClient(base, await buildKey(backend))
  await owner.get(path, as('ada'))
  const answers = await Promise.all(
    Array.from({ length: 130 }, () => owner.get('/v1/models', as('ada'))),
  )
  t.ok(answers.some(({ status }) => status === 429))
  t.equal((await owner.get(path, as('ada'))).status, 429)
  t.equal((await owner.get(path, as('bob'))).status, 200)
  t.equal((await owner.get(path)).status, 200)
})

t.test(
  '429: users are made at the pace of the owner key, and known ones are served on',
  async t => {
    const owner = createTestClient(base, await buildKey(backend))
    await owner.get(path, as('known'))
    const statuses = new Set<number>()
    for (let n = 0; n < 110 && !statuses.has(429); n++) {
      statuses.add((await owner.get(path, as(`user ${n}`))).status)
    }
    t.same(statuses, new Set([200, 429]))
    t.equal((await owner.get(path)).status, 429)
    t.equal((await owner.get(path, as('known'))).status, 200)
  },
)
