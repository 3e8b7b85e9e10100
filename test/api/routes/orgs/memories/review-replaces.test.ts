import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import { reviewSharedMemory } from '#shared/org/memories/review-shared-memory.ts'
import { savePassResults } from '#shared/org/base/org-turns.postgres.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { insertTurns } from '#shared/vault/ingest/member-turns.postgres.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/memories`
const ann = await team.addMember('ann')
const keyHash = hashKey(backend.config.keyPepper, ann)

/** A memory that somebody has reviewed, and one that waits to replace it. */
async function contradiction(): Promise<{ old: string; added: string }> {
  const doubtful = { text: 'launch: on June 7', confidence: 0.5, author: 'ann', reviewed: false }
  const [old] = await seedTeamMemories(backend, team, [
    { text: 'launch: on May 5', tags: ['launch'] },
  ])
  const [added] = await seedTeamMemories(backend, team, [doubtful])
  const id = mintId()
  await backend.postgres.transaction(tx =>
    insertTurns(tx, [{ id, keyHash, saidAt: Date.now(), leftOut: 0 }]),
  )
  const { text, confidence } = doubtful
  await savePassResults(backend.postgres, id, {
    pass1: [{ text, confidence, note: false }],
    pass2: [{ text, confidence, tags: [], tagIds: [] }],
    pass3: [{ text, action: 'ADD', mem_id: added!, replaces: old! }],
  })
  return { old: old!, added: added! }
}

type Item = { mem_id: string; text: string; reviewed: boolean; replaces: unknown }

const listed = async (id: string): Promise<Item | undefined> =>
  (await admin.get(`${path}?limit=200`)).body.items.find(({ mem_id }: Item) => mem_id === id)

const queued = async (id: string): Promise<Item | undefined> =>
  (await admin.get(`${path}/review?limit=200`)).body.review.find(
    ({ mem_id }: Item) => mem_id === id,
  )

const decide = (id: string, action: string, headers = {}) =>
  admin.post(`${path}/${id}/review`, { action }, headers)

const told = async (id: string): Promise<string[]> =>
  (await admin.get(`${path}/${id}/audit`)).body.events.map(
    ({ action, actor }: Record<string, string>) => {
      t.equal(actor, team.email)
      return action
    },
  )

t.test('200: the queue shows what an item would replace', async t => {
  const { old, added } = await contradiction()
  t.same((await queued(added))?.replaces, {
    mem_id: old,
    text: 'launch: on May 5',
    tags: ['launch'],
  })
  const [other] = await seedTeamMemories(backend, team, [
    { text: 'x', confidence: 0.1, reviewed: false },
  ])
  t.equal((await queued(other!))?.replaces, null)
  await admin.send('DELETE', `${path}/${old}`)
  t.equal((await queued(added))?.replaces, null, 'gone by now')
  t.equal((await decide(added, 'approve')).status, 200)
})

t.test('200: approving removes it, undo brings it back, and both are told', async t => {
  const { old, added } = await contradiction()
  const refused = await admin.post(`${path}/${added}/review`, { action: 'approve', text: ' ' })
  t.equal(refused.status, 400)
  t.match(await listed(old), { text: 'launch: on May 5' }, 'refused words remove nothing')
  const once = { 'idempotency-key': 'approve' }
  t.match(await decide(added, 'approve', once), { status: 200, body: { reviewed: true } })
  t.match(await decide(added, 'approve', once), { status: 200 })
  t.equal(await listed(old), undefined)
  t.same(await told(old), ['delete', 'create'])

  t.match(await admin.post(`${path}/${added}/review/undo`), {
    status: 200,
    body: { reviewed: false },
  })
  t.match(await listed(old), { text: 'launch: on May 5', tags: ['launch'], reviewed: true })
  t.same(await told(old), ['create', 'delete', 'create'])
  t.match((await queued(added))?.replaces, { mem_id: old })

  t.equal((await decide(added, 'approve')).status, 200)
  t.equal(await listed(old), undefined, 'and again')
})

t.test(
  '200: dismissing leaves both; undo of an approval leaves what was decided since',
  async t => {
    const { old, added } = await contradiction()
    t.equal((await decide(added, 'dismiss')).status, 200)
    t.match(await listed(old), { text: 'launch: on May 5' })
    t.equal((await admin.post(`${path}/${added}/review/undo`)).status, 200)

    t.equal((await decide(added, 'approve')).status, 200)
    t.equal((await admin.post(`${path}/${old}/restore`, {})).status, 200)
    t.equal((await admin.send('DELETE', `${path}/${old}`)).status, 200)
    t.equal((await admin.post(`${path}/${added}/review/undo`)).status, 200)
    t.equal(await listed(old), undefined, 'an admin has removed it for good')
  },
)

/** A backend whose second write to a memory, the one after the removal, comes after `meanwhile`. */
function interruptedBackend(meanwhile: () => Promise<void>) {
  let writes = 0
  const memories = new Proxy(backend.mongo.memories, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (typeof value !== 'function') return value
      return async (...given: unknown[]) => {
        if (name === 'updateOne' && ++writes === 2) await meanwhile()
        return value.apply(target, given)
      }
    },
  })
  return { ...backend, mongo: { ...backend.mongo, memories } }
}

const approveBy = (id: string) =>
  ({ actor: team.email, tags: undefined, operation: mintId(), id, action: 'approve' }) as const

const retag = async (id: string) => {
  const { status } = await admin.send('PATCH', `${path}/${id}`, { body: { tags: ['changed'] } })
  t.equal(status, 200)
}

t.test('a decision that was cut short is made again by whoever asks again', async t => {
  const cutShort = async (added: string, action: 'approve' | 'dismiss', isChanged: boolean) => {
    const broken = interruptedBackend(() => Promise.reject(new Error('away')))
    await t.rejects(reviewSharedMemory(broken, team, approveBy(added)), /away/)
    t.match(await listed(added), { reviewed: false })
    if (isChanged) await retag(added)
    t.equal((await decide(added, action)).status, 200)
  }
  for (const isChanged of [false, true]) {
    const first = await contradiction()
    await cutShort(first.added, 'approve', isChanged)
    t.equal(await listed(first.old), undefined)
    t.equal((await admin.post(`${path}/${first.added}/review/undo`)).status, 200)
    t.match(await listed(first.old), { text: 'launch: on May 5' })

    const second = await contradiction()
    await cutShort(second.added, 'dismiss', isChanged)
    t.match(await listed(second.old), { text: 'launch: on May 5' }, 'decided otherwise')
  }
})

t.test('200: undo brings back what was removed before the memory itself was changed', async t => {
  const { old, added } = await contradiction()
  const raced = interruptedBackend(() => retag(added))
  t.match(await reviewSharedMemory(raced, team, approveBy(added)), { tags: ['changed'] })
  t.equal(await listed(old), undefined)
  t.equal((await admin.post(`${path}/${added}/review/undo`)).status, 200)
  t.match(await listed(old), { text: 'launch: on May 5' })
})

t.test(
  '200 and 409: of several who decide at once one does, and the other memory follows',
  async t => {
    const won = new Set<string>()
    for (let n = 0; n < 8; n++) {
      const { old, added } = await contradiction()
      const actions = n % 2 ? ['approve', 'dismiss', 'approve'] : ['dismiss', 'approve', 'dismiss']
      const answers = await Promise.all(actions.map(action => decide(added, action)))
      t.same(answers.map(({ status }) => status).sort(), [200, 409, 409])
      const { action } = answers.find(({ status }) => status === 200)!.body
      won.add(action)
      t.equal((await listed(old)) === undefined, action === 'approve', `${action} won`)
    }
    t.ok(won.size > 0, [...won].join())
  },
)
