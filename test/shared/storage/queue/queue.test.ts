import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { holdFor, type JobOutcome } from '#shared/storage/queue/job-outcome.ts'
import { sendJob } from '#shared/storage/queue/job-admin.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const backend = await createTestBackend(t)
const { postgres, queue } = backend
const { query } = postgres

type Try = Pick<Job<'webhook'>, 'isRetry' | 'isLastTry'>

/** How the tries of a job end, in order, and what it was given at each; the last outcome repeats. */
const scripts = new Map<string, { outcomes: object[]; tries: Try[] }>()

await queue.work('webhook', async batch =>
  batch.map(({ id, isRetry, isLastTry }): JobOutcome => {
    const { outcomes, tries } = scripts.get(id)!
    tries.push({ isRetry, isLastTry })
    return { id, ...outcomes[Math.min(tries.length, outcomes.length) - 1]! } as JobOutcome
  }),
)

async function send(...outcomes: object[]) {
  const id = mintId()
  const tries: Try[] = []
  scripts.set(id, { outcomes, tries })
  await queue.send(postgres, 'webhook', [{ id, data: { delivery: id }, priority: 0 }])
  return { id, tries }
}

type JobRow = {
  id: string
  name: string
  state: string
  triesLeft: number
  inSeconds: number
  error: string
}

const rowsOf = async (delivery: string): Promise<JobRow[]> =>
  (
    await query<JobRow>(
      `select id, name, state, retry_limit - retry_count as "triesLeft",
              extract(epoch from start_after - now())::float8 as "inSeconds",
              coalesce(source_output->>'message', output->>'message') as error
       from pgboss.job where data->>'delivery' = $1 and state <> 'failed'`,
      [delivery],
    )
  ).rows

t.test('a sent job is as pg-boss would have inserted it', async t => {
  const id = mintId()
  const others = {
    id: mintId(),
    data: { delivery: id },
    priority: -3,
    key: 'key',
    group: 'group',
    afterSeconds: 60,
  }
  await queue.send(postgres, 'upload', [{ id, data: {} as never, priority: 0 }, others as never])
  const byBoss = await sendJob(backend.config.databaseUrl, 'upload', {})
  const { rows } = await query<{ id: string; job: object }>(
    `select id, to_jsonb(j) - '{id,created_on,start_after,keep_until}'::text[]
       || jsonb_build_object('kept', keep_until - start_after, 'after', start_after - created_on) as job
     from pgboss.job j where name = 'upload'`,
  )
  const jobOf = (asked: string | null) => rows.find(row => row.id === asked)!.job
  t.same(jobOf(id), jobOf(byBoss))
  t.same(jobOf(others.id), {
    ...jobOf(id),
    data: others.data,
    priority: -3,
    singleton_key: 'key',
    group_id: 'group',
    after: '00:01:00',
  })
  await t.rejects(queue.send(postgres, 'nowhere' as never, [{ ...others, id: mintId() } as never]))
})

t.test('a job that can never succeed is tried once and becomes a dead letter', async t => {
  const { id, tries } = await send({ status: 'cancel', error: 'No such vault' })
  await waitUntil('it is dead', async () => (await rowsOf(id))[0]?.name === 'webhook.dead')
  t.match(await rowsOf(id), [{ name: 'webhook.dead', state: 'created', error: 'No such vault' }])
  t.equal(tries.length, 1)
})

t.test('a job that fails is tried again, with one try less', async t => {
  const { id, tries } = await send({ status: 'retry', error: 'away' }, { status: 'done' })
  await waitUntil(
    'it waits',
    async () => (await rowsOf(id))[0]?.state !== 'active' && tries.length > 0,
  )
  await makeJobsDue(backend, 'webhook', [id])
  await waitUntil('it was tried again', () => tries.length === 2)
  const retries = tries.map(({ isRetry }) => isRetry)
  t.same(retries, [false, true])
  await waitUntil('it is done', async () => (await rowsOf(id))[0]?.state === 'completed')
  t.match(await rowsOf(id), [{ triesLeft: 9 }])
})

t.test('a snoozed job comes again when it said, and has all its tries', async t => {
  const { id, tries } = await send({ status: 'snooze', snoozeSeconds: 3600 })
  await waitUntil('it is snoozed', async () => {
    // Read after the try: before it the job waits, too.
    const isTried = tries.length === 1
    const [row] = await rowsOf(id)
    return isTried && row?.state === 'created'
  })
  const [snoozed] = await rowsOf(id)
  t.ok(Math.abs(snoozed!.inSeconds - 3600) < 600, `in ${snoozed!.inSeconds} s`)

  for (let n = 2; n <= 4; n++) {
    await makeJobsDue(backend, 'webhook', [id])
    await waitUntil('it came again', () => tries.length === n)
    await waitUntil('it is snoozed', async () => (await rowsOf(id))[0]!.state === 'created')
  }
  t.notOk(tries.some(({ isLastTry }) => isLastTry))
  // The next one, and ten after it.
  t.match(await rowsOf(id), [{ triesLeft: 11 }])
})

t.test('a held job waits with all its tries until what it needs is not away', async t => {
  const outage = { dependency: 'ollama/x', reason: '404 not found', isAway: true }
  const jobs = ['ollama/x', 'mongodb', 'ollama/soon'].map(dependency => ({ ...outage, dependency }))
  jobs[2]!.isAway = false
  const away = new Set(['ollama/x', 'mongodb'])
  queue.held.away = () => [...away]
  const held = await Promise.all(
    jobs.map(one => {
      const { id: _, ...outcome } = holdFor('', one)
      return send(outcome, { status: 'done' })
    }),
  )
  const stats = async () => (await readQueueStats(query)).find(({ name }) => name === 'webhook')
  await waitUntil('they are held', async () => (await stats())?.held === 3)
  const later = mintId()
  const job = { id: later, data: { delivery: later }, priority: 0, afterSeconds: 3_600 }
  await queue.send(postgres, 'webhook', [job])
  const [row] = await rowsOf(held[0]!.id)
  t.match(row, { state: 'created', triesLeft: 11, error: 'ollama/x: 404 not found' })
  t.ok(row!.inSeconds > 300, 'it comes by itself, later')
  t.ok((await rowsOf(held[2]!.id))[0]!.inSeconds < 60, 'a rate limit ends soon')

  away.delete('ollama/x')
  queue.held.wake()
  await waitUntil('it runs', () => held[0]!.tries.length === 2)
  t.equal(held[1]!.tries.length, 1, 'the other waits on')
  t.match(await stats(), { held: 2 })
  away.clear()
  await waitUntil('a worker looks now and then', () => held[1]!.tries.length === 2)
  t.ok((await rowsOf(later))[0]!.inSeconds > 3_000, 'one that waits for a time alone is not woken')
})

t.test('a job that was taken once cannot be cancelled while it waits again', async t => {
  const cancel = (id: string) => postgres.transaction(tx => queue.cancelJobs(tx, id))
  const waiting = mintId()
  const job = { id: waiting, data: { delivery: waiting }, priority: 0, afterSeconds: 3600 }
  await queue.send(postgres, 'webhook', [job])
  t.equal(await cancel(waiting), true)
  t.same(await rowsOf(waiting), [])

  for (const [outcome, state] of [
    [{ status: 'snooze', snoozeSeconds: 3600 }, 'created'],
    [{ status: 'retry', error: 'away' }, 'retry'],
  ] as const) {
    const { id, tries } = await send(outcome, { status: 'snooze', snoozeSeconds: 3600 })
    await waitUntil('it waits again', async () => {
      const [row] = await rowsOf(id)
      return tries.length > 0 && (row?.state === state || tries.length > 1)
    })
    t.equal(await cancel(id), false, outcome.status)
    t.equal((await rowsOf(id)).length, 1)
  }

  const dead = await send({ status: 'cancel', error: 'No such vault' })
  await waitUntil('it is dead', async () => (await rowsOf(dead.id))[0]?.name === 'webhook.dead')
  const [letter] = await rowsOf(dead.id)
  t.equal(await cancel(letter!.id), false)
  t.equal((await rowsOf(dead.id)).length, 1)
})

t.test('a job of a key is made due where one waits, and sent where none does', async t => {
  const key = mintId()
  const outcome = { status: 'done' }
  const job = { data: { delivery: key }, key, group: mintId() }
  const [first, second] = [mintId(), mintId()]
  for (const id of [first, second]) scripts.set(id, { outcomes: [outcome], tries: [] })
  await queue.send(postgres, 'webhook', [{ ...job, id: first, priority: 0, afterSeconds: 3600 }])
  await postgres.transaction(tx => queue.sendOrHasten(tx, 'webhook', job))
  await waitUntil('it ran', () => scripts.get(first)!.tries.length === 1)
  t.equal((await rowsOf(key)).length, 1)
})

t.test('a running job ends in a transaction, one that another worker took does not', async t => {
  const [own, taken] = [mintId(), mintId()]
  const data = {} as never
  await queue.send(postgres, 'clear', [
    { id: own, data, priority: 0 },
    { id: taken, data, priority: 0 },
  ])
  await query(
    `update pgboss.job set state = 'active', retry_count = case when id = $2 then 2 else 1 end
   where name = 'clear' and id in ($1, $2)`,
    [own, taken],
  )
  const jobs = [
    { id: own, claim: 1 },
    { id: taken, claim: 1 },
  ]
  const left = async () =>
    (await query<{ id: string }>(`select id from pgboss.job where name = 'clear'`)).rows.map(
      ({ id }) => id,
    )
  const rolledBack = postgres.transaction(async tx => {
    await queue.complete(tx, 'clear', jobs)
    throw new Error('rolled back')
  })
  await t.rejects(rolledBack, { message: 'rolled back' })
  t.same(new Set(await left()), new Set([own, taken]))
  await postgres.transaction(tx => queue.complete(tx, 'clear', jobs))
  t.same(await left(), [taken])
})

t.test('what is due is as old as the time since it could have begun', async t => {
  const now = async (name: string) =>
    (await readQueueStats(query)).find(stats => stats.name === name)
  const id = mintId()
  await queue.send(postgres, 'edit-settle', [
    { id, data: {} as never, priority: 0, afterSeconds: 3600 },
  ])
  t.match(await now('edit-settle'), { waiting: 1, oldestSeconds: null })
  const move = (createdOn: string, startAfter: string) =>
    query(
      `update pgboss.job set created_on = now() - $2::interval, start_after = now() - $3::interval
       where id = $1`,
      [id, createdOn, startAfter],
    )
  // Counted in hours, with a little for the time until it is read.
  const oldest = async () => Math.floor((await now('edit-settle'))!.oldestSeconds! / 3_600)
  await move('9 hours', '2 hours')
  t.equal(await oldest(), 2, 'it was for later')
  await move('1 hour', '7 hours')
  t.equal(await oldest(), 1, 'it was sent with a time that had passed')
})
