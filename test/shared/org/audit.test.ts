import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import { sharedByIds } from '#shared/org/memories/shared-memories.mongo.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { finalizeStrandedWrites } from '#shared/org/memories/finalize-shared-writes.ts'
import { restoreSharedMemory } from '#shared/org/memories/restore-shared-memory.ts'
import { reviewSharedMemory } from '#shared/org/memories/review-shared-memory.ts'
import {
  addSharedMemories,
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { insertTag, ageRows, makeSharedWritesDue } from '#test/support/checks/alter.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'

const backend = await createTestBackend(t)
const team = await buildTeam(backend)
// An approval takes the tags of the organization alone.
await insertTag(backend, team.org, 'c', 'Is this about c?')
const { query } = backend.postgres
const actor = 'ann'

/** Where whoever makes a change dies. */
type Point = 'intended' | 'done' | 'telling'

const dead = (): never => {
  throw new Error('died')
}

/** The same stores, of which one goes away at a point of the next change, as for a process that dies. */
function dyingAt(point: Point): Backend {
  const { mongo, postgres } = backend
  const writes = new Set<PropertyKey>(['insertMany', 'updateOne'])
  const memories = new Proxy(mongo.memories, {
    get(target, name) {
      if (point === 'intended' && writes.has(name)) return dead
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return {
    ...backend,
    mongo: { ...mongo, memories },
    postgres: {
      ...postgres,
      transaction: work =>
        postgres.transaction(async tx => {
          if (point === 'done') dead()
          await work(tx)
          return dead()
        }),
    },
  }
}

const eventsOf = async (memory: string): Promise<string[]> =>
  (
    await query<{ action: string }>(
      'select action from audit_events where memory = $1 order by action',
      [memory],
    )
  ).rows.map(({ action }) => action)

const makeDue = () => makeSharedWritesDue(backend)

type Way = (stores: Backend, operation: string, id: string) => Promise<unknown>

/** Each kind of change, and what the audit tells of it. */
const ways: Record<string, { change: Way; told: string[]; left: object[] }> = {
  edit: {
    change: (stores, operation, id) =>
      updateSharedMemory(stores, team, { operation, actor, id, text: 'new words' }),
    told: ['update'],
    left: [{ text: 'new words', tags: ['a'], version: 2 }],
  },
  retag: {
    change: (stores, operation, id) =>
      updateSharedMemory(stores, team, { operation, actor, id, tags: ['b'] }),
    told: ['retag'],
    left: [{ text: 'old words', tags: ['b'], version: 2 }],
  },
  both: {
    change: (stores, operation, id) =>
      updateSharedMemory(stores, team, { operation, actor, id, text: 'new', tags: [] }),
    told: ['retag', 'update'],
    left: [{ text: 'new', tags: [], version: 2 }],
  },
  review: {
    change: (stores, operation, id) =>
      reviewSharedMemory(stores, team, { operation, actor, id, action: 'approve', tags: ['c'] }),
    told: ['retag', 'update'],
    left: [{ tags: ['c'], reviewed: true, version: 2 }],
  },
  delete: {
    change: (stores, operation, id) => deleteSharedMemory(stores, team, { operation, actor, id }),
    told: ['delete'],
    left: [],
  },
}

const held = async (id: string) => sharedByIds(backend.mongo, team, [id])
const fresh = async (): Promise<string> =>
  (
    await seedTeamMemories(backend, team, [
      { text: 'old words', tags: ['a'], confidence: 0.1, reviewed: false },
    ])
  )[0]!

for (const [name, { change, told, left }] of Object.entries(ways)) {
  for (const point of ['intended', 'done', 'telling'] as const) {
    t.test(`${name}, died at "${point}", repeated: done once and logged once`, async t => {
      const id = await fresh()
      const operation = mintId()
      await t.rejects(change(dyingAt(point), operation, id), /died/)
      t.same(await eventsOf(id), ['create'], 'nothing is told before it is settled')
      await Promise.all([change(backend, operation, id), change(backend, operation, id)])
      await change(backend, operation, id)
      t.match(await held(id), left)
      t.equal((await held(id)).length, left.length)
      t.same(await eventsOf(id), ['create', ...told])
    })

    t.test(`${name}, died at "${point}": the sweep tells what came about`, async t => {
      const id = await fresh()
      await t.rejects(change(dyingAt(point), mintId(), id), /died/)
      t.equal(await finalizeStrandedWrites(backend), 0, 'not within half a minute')
      await makeDue()
      const cameAbout = point !== 'intended'
      t.match(await sweepAll(backend), { sharedWrites: cameAbout ? 1 : 0 })
      t.same(await eventsOf(id), ['create', ...(cameAbout ? told : [])])
      await makeDue()
      t.equal(await finalizeStrandedWrites(backend), 0)
    })
  }
}

t.test('a seeding that dies half way is logged whole, once', async t => {
  for (const point of ['intended', 'done', 'telling'] as const) {
    const operation = mintId()
    const item = { confidence: 1, author: 'ann', reviewed: true, acquiredAt: 1 }
    const items = ['one', 'two', 'three'].map(text => ({ ...item, text, tags: [point] }))
    const seed = (stores: Backend) => addSharedMemories(stores, team, { operation, actor, items })
    await t.rejects(seed(dyingAt(point)), /died/)
    const [first] = await Promise.all([seed(backend), seed(backend)])
    const ids = first.added.map(({ memory }) => memory.id)
    t.equal((await sharedByIds(backend.mongo, team, ids)).length, 3)
    for (const id of ids) t.same(await eventsOf(id), ['create'])
    const { rows } = await query(
      `select id from usage_events where kind = 'org-memory' and id in
         (select id from shared_writes where memory = any($1::uuid[]))`,
      [ids],
    )
    t.equal(rows.length, 3, 'and billed once')
  }
})

t.test('a change that died is logged before the next one, even when that is another', async t => {
  const id = await fresh()
  const dying = updateSharedMemory(dyingAt('done'), team, {
    operation: mintId(),
    actor: 'bob',
    id,
    text: 'by bob',
  })
  await t.rejects(dying, /died/)
  await updateSharedMemory(backend, team, { operation: mintId(), actor: 'ann', id, tags: ['late'] })
  const { rows } = await query<{ told: string }>(
    `select action || ' ' || actor as told from audit_events
     where memory = $1 order by position`,
    [id],
  )
  const told = rows.map(({ told }) => told)
  t.same(told, [`create ${team.email}`, 'update bob', 'retag ann'])
})

t.test('a restoration that died brings back once', async t => {
  const id = await fresh()
  await deleteSharedMemory(backend, team, { operation: mintId(), actor, id })
  const again = { operation: mintId(), actor, id, event: undefined }
  await t.rejects(restoreSharedMemory(dyingAt('done'), team, again), /died/)
  await restoreSharedMemory(backend, team, again)
  t.match(await held(id), [{ text: 'old words', tags: ['a'], reviewed: false }])
  t.same(await eventsOf(id), ['create', 'create', 'delete'])
})

t.test('what did not come about within a day is forgotten', async t => {
  const id = await fresh()
  await t.rejects(ways['edit']!.change(dyingAt('intended'), mintId(), id), /died/)
  await ageRows(backend, 'shared_writes', '25 hours')
  await makeDue()
  await finalizeStrandedWrites(backend)
  const { rows } = await query(`select 1 from shared_writes where state = 'pending'`)
  t.same(rows, [])
})

t.test('one that cannot be finalized holds up no other, and is tried until it can', async t => {
  const ids = [await fresh(), await fresh()]
  for (const id of ids) await t.rejects(ways['edit']!.change(dyingAt('done'), mintId(), id), /died/)
  await query(
    `update shared_writes
     set due_at = now() - make_interval(secs => case when memory = $1 then 2 else 1 end),
         created_at = now() - interval '25 hours'
     where state = 'pending'`,
    [ids[0]],
  )
  let transactions = 0
  const { postgres } = backend
  const transaction: Backend['postgres']['transaction'] = work =>
    ++transactions === 1 ? dead() : postgres.transaction(work)
  const failing = { ...backend, postgres: { ...postgres, transaction } }
  t.equal(await finalizeStrandedWrites(failing), 1)
  t.same(await eventsOf(ids[0]!), ['create'])
  t.same(await eventsOf(ids[1]!), ['create', 'update'])
  t.equal(await finalizeStrandedWrites(backend), 0, 'it waits')
  await makeDue()
  t.equal(await finalizeStrandedWrites(backend), 1, 'and is not forgotten after a day')
  t.same(await eventsOf(ids[0]!), ['create', 'update'])
})

t.test('after all this the counts of tag sets are those of the documents', async t => {
  const documents = await backend.mongo.memories
    .find({ vault: team.vault, epoch: 1 }, { projection: { tag_set: 1 } })
    .toArray()
  const counted = Map.groupBy(documents, ({ tag_set }) => tag_set!)
  const sets = (await listTagSets(query, team)).filter(({ memories }) => memories > 0)
  t.ok(sets.length > 3)
  t.same(
    Object.fromEntries(sets.map(({ tagSet, memories }) => [tagSet, memories])),
    Object.fromEntries([...counted].map(([tagSet, rows]) => [tagSet, rows.length])),
  )
})
