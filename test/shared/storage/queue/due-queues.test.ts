import pg from 'pg'
import t, { type Test } from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { makeJobsDue, startJob } from '#test/support/checks/alter-jobs.ts'
import { insertedJobsSql } from '#shared/storage/queue/job-sql.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** What an idle worker asks of Postgres, and that it misses nothing. */

const asked = { fetches: 0, named: 0, due: 0, passes: 0 }
/** The queues that each look asked for. */
const lookedAt = new Set<string>()
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
  const [config, values] = given as [string | { text?: string; name?: string }, unknown[]?]
  const text = (typeof config === 'string' ? config : config.text) ?? ''
  // pg-boss has a queue of its own for what it sends by the clock.
  if (/name = '(?:ingest|clear|webhook|org-tag)'/.test(text) && /skip locked/i.test(text)) {
    asked.fetches++
    if (typeof config === 'object' && config.name?.startsWith('queue.fetch:')) asked.named++
  }
  if (/unnest\(\$1::text\[\]\) as asked/.test(text)) {
    asked.due++
    lookedAt.add(String(values?.[0]))
  }
  if (/set monitor_claim_on/i.test(text)) asked.passes++
  return Reflect.apply(query, this, given) as unknown
} as typeof query
t.teardown(() => (pg.Client.prototype.query = query))

const backend = await createTestBackend(t, {
  queuePace: { lookEveryMs: 20, passEveryMs: 40, lingerMs: 0 },
})
const done: string[] = []
for (const name of ['ingest', 'clear', 'webhook'] as const) {
  await backend.queue.work(name, async batch => {
    done.push(...batch.map(({ id }) => id))
    return batch.map(({ id }) => ({ id, status: 'done' as const }))
  })
}
/** Those of `org-tag` wait for this. */
let held: Promise<void> | undefined
let taken = 0
await backend.queue.work('org-tag', async batch => {
  taken += batch.length
  await held
  return batch.map(({ id }) => ({ id, status: 'done' as const }))
})
/** Two of `ingest`, one of `clear`, six of `webhook`, twelve of `org-tag`. */
const fetchers = 21

/** Holds the jobs of `org-tag` until the test ends. */
function hold(t: Test): void {
  const { promise, resolve } = Promise.withResolvers<void>()
  held = promise
  taken = 0
  t.teardown(resolve)
}

const sendTags = (groups: readonly string[]): Promise<void> =>
  backend.queue.send(
    backend.postgres,
    'org-tag',
    groups.map(group => {
      const id = mintId()
      return { id, data: { turn: id, org: group }, priority: 0, group, afterSeconds: 3_600 }
    }),
  )

/** Ends the time for which a job waits, of which no notice is given. */
const makeDue = (name: 'webhook' | 'org-tag') => makeJobsDue(backend, name)

/** Waits until due jobs have been looked for so many times more. */
async function looks(times: number): Promise<void> {
  const { due } = asked
  await waitUntil('due jobs are looked for', () => asked.due >= due + times)
}

t.test('idle fetchers ask for nothing, one statement at a time asks for all', async t => {
  await waitUntil('all have asked once', () => asked.fetches >= fetchers)
  // The first question of one may still be under way, and its answer lead to another.
  for (let fetches = -1; fetches !== asked.fetches; await looks(2)) fetches = asked.fetches
  const before = { ...asked }
  lookedAt.clear()
  await looks(3)
  t.equal(asked.fetches, before.fetches)
  t.same([...lookedAt], ['ingest,clear,webhook,org-tag'])
})

t.test('a job that becomes due by the clock is taken', async t => {
  const id = mintId()
  const job = { id, data: { delivery: id }, priority: 0, afterSeconds: 3_600 }
  await backend.queue.send(backend.postgres, 'webhook', [job])
  await looks(2)
  t.notOk(done.includes(id))
  await makeDue('webhook')
  await waitUntil('it is done', () => done.includes(id))
  t.pass()
})

t.test('a new job is taken', async t => {
  const id = mintId()
  await backend.queue.send(backend.postgres, 'webhook', [
    { id, data: { delivery: id }, priority: 0 },
  ])
  await waitUntil('it is done', () => done.includes(id))
  t.pass()
})

t.test('a new job wakes one fetcher, and Postgres plans no fetch again', async t => {
  // Nothing is looked for by the clock.
  const quiet = await createTestBackend(t, {
    queuePace: { lookEveryMs: 3_600_000, passEveryMs: 3_600_000, lingerMs: 0 },
  })
  const taken: string[] = []
  const before = { ...asked }
  await quiet.queue.work('ingest', async batch => {
    taken.push(...batch.map(({ id }) => id))
    return batch.map(({ id }) => ({ id, status: 'done' as const }))
  })
  await waitUntil('both have asked once', () => asked.fetches === before.fetches + 2)
  for (const count of [1, 2, 3]) {
    const job = { id: mintId(), data: {} as never, priority: 0 }
    await quiet.queue.send(quiet.postgres, 'ingest', [job])
    await waitUntil('it is taken', () => taken.length === count)
    t.equal(asked.fetches, before.fetches + 2 + count)
  }
  t.equal(asked.named, before.named + 5)
})

t.test('new jobs linger after a batch, unless a request waits for one of them', async t => {
  const slow = await createTestBackend(t, {
    queuePace: { lookEveryMs: 3_600_000, passEveryMs: 3_600_000, lingerMs: 3_600_000 },
  })
  const batches: string[][] = []
  const before = asked.fetches
  await slow.queue.work('ingest', async batch => {
    batches.push(batch.map(({ id }) => id).toSorted())
    return batch.map(({ id }) => ({ id, status: 'done' as const }))
  })
  await waitUntil('both have asked once', () => asked.fetches === before + 2)
  const send = (id: string, isAwaited: boolean) =>
    slow.postgres.query(
      `with job as (select $1::uuid as id, '{}'::jsonb as data, 0 as priority, null::text as key,
                           null::text as "group", null::float8 as after),
       ${insertedJobsSql('ingest', 'job', String(isAwaited))} select from notified`,
      [id],
    )
  const [first, second, third] = [mintId(), mintId(), mintId()]
  await send(first, false)
  await waitUntil('the first is taken at once', () => batches.length === 1)
  await send(second, false)
  await send(third, true)
  await waitUntil('the others are taken', () => batches.length === 2)
  t.same(batches, [[first], [second, third].toSorted()])
  t.equal(asked.fetches, before + 4)
})

t.test('jobs that become due are taken by all fetchers, up to the limit of a group', async t => {
  hold(t)
  const groups = ['one', 'two', 'three'].flatMap(group => Array.from({ length: 6 }, () => group))
  await sendTags(groups)
  await makeDue('org-tag')
  await waitUntil('every fetcher has one', () => taken === 12)
  t.pass()
})

t.test('jobs of a group at its limit keep one fetcher asking, not all', async t => {
  await waitUntil('the jobs of the test before are done', () => taken === 18)
  hold(t)
  await sendTags(Array.from({ length: 10 }, () => 'one'))
  await makeDue('org-tag')
  await waitUntil('the group is at its limit', () => taken === 4)
  await looks(2)
  const before = { ...asked }
  await looks(3)
  const fetches = asked.fetches - before.fetches
  t.ok(
    fetches <= asked.due - before.due + 1,
    `${fetches} fetches in ${asked.due - before.due} looks`,
  )
  t.equal(taken, 4)
})

t.test('while no job runs, dead workers are looked for once a minute', async t => {
  const { query } = backend.postgres
  await waitUntil('nothing runs', async () => {
    const { rows } = await query(`select from pgboss.job where state = 'active'`)
    return rows.length === 0
  })
  // The passes after the last job.
  for (let passes = -1; passes !== asked.passes; await looks(4)) passes = asked.passes
  const { passes } = asked
  const begun = performance.now()
  await looks(8)
  const minutes = Math.floor((performance.now() - begun) / 60_000)
  t.ok(asked.passes - passes <= 1 + minutes, `${asked.passes - passes} in 8 looks`)
})

t.test('a job of a dead worker is tried again, in whatever queue it is', async t => {
  const { query } = backend.postgres
  const id = mintId()
  await backend.queue.send(backend.postgres, 'upload', [{ id, data: {} as never, priority: 0 }])
  // The claim of the pass before lasts for two seconds.
  await query(`update pgboss.queue set monitor_claim_on = now() - interval '2 seconds'`)
  await query(
    `update pgboss.job set state = 'active', started_on = now(), heartbeat_on = now() - interval '1 minute'
     where name = 'upload' and id = $1`,
    [id],
  )
  await waitUntil('it is tried again', async () => {
    const { rows } = await query(`select from pgboss.job where id = $1 and state = 'retry'`, [id])
    return rows.length === 1
  })
  t.pass()
})

t.test('finished jobs are deleted after a minute', async t => {
  const { query } = backend.postgres
  const id = mintId()
  await backend.queue.send(backend.postgres, 'upload', [{ id, data: {} as never, priority: 0 }])
  await query(
    `update pgboss.job set state = 'completed', completed_on = now() - interval '61 seconds'
     where name = 'upload' and id = $1`,
    [id],
  )
  await query(`update pgboss.queue set maintain_on = now() - interval '61 seconds'`)
  // The next pass, as after a job.
  const job = { id: mintId(), data: {} as never, priority: 0 }
  await backend.queue.send(backend.postgres, 'edit-settle', [job])
  await startJob(backend, job.id)
  await waitUntil('it is deleted', async () => {
    const { rows } = await query('select from pgboss.job where id = $1', [id])
    return rows.length === 0
  })
  t.pass()
})
