import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Job } from '#shared/storage/queue/queue.ts'
import { asBatch, concurrently, sequentially, type JobDefinition } from '#workers/run-jobs.ts'

type Entry = { level: string; fields: object; event: string }

function createFakeBackend(isAway = false): { backend: Backend; entries: Entry[] } {
  const entries: Entry[] = []
  const entryOf = (level: string) => (fields: object, event: string) =>
    void entries.push({ level, fields, event })
  const log = { debug: entryOf('debug'), warn: entryOf('warn'), error: entryOf('error') }
  const storeBreaker = { isAway, reason: 'away', check: async () => {} }
  return { backend: { log, storeBreaker } as unknown as Backend, entries }
}

const buildJob = (delivery: string, isLastTry = false): Job<'webhook'> => ({
  id: delivery,
  data: { delivery },
  signal: new AbortController().signal,
  isRetry: false,
  isLastTry,
  claim: 0,
})

const define = (
  run: JobDefinition<'webhook'>['run'],
  more: Partial<JobDefinition<'webhook'>> = {},
): JobDefinition<'webhook'> => ({
  run,
  failedEvent: 'webhook.failed',
  ...more,
})

const throwing = (error: Error) => async (): Promise<void> => {
  throw error
}

const groupOf = () => 'all'

/** Runs one job; says how it ended, how often it was given up, and what was logged. */
async function runOne(
  error: Error,
  { isLastTry = false, ...more }: Partial<JobDefinition<'webhook'>> & { isLastTry?: boolean } = {},
) {
  const { backend, entries } = createFakeBackend()
  let givenUp = 0
  const giveUp = async () => void givenUp++
  const handle = concurrently(define(throwing(error), { giveUp, ...more }))
  const [outcome] = await handle(backend, [buildJob('one', isLastTry)])
  return { outcome, givenUp, entries }
}

t.test('a refusal that time cannot mend gives the job up at its first try', async t => {
  for (const reason of ['invalid', 'missing', 'conflict', 'forbidden', 'unpaid'] as const) {
    const { outcome, givenUp, entries } = await runOne(new Refusal(reason, 'no'))
    t.same(outcome, { id: 'one', status: 'cancel', error: 'no' }, reason)
    t.equal(givenUp, 1, reason)
    t.match(entries, [
      { level: 'warn', fields: { delivery: 'one', last: true }, event: 'webhook.failed' },
    ])
  }
})

t.test('every other failure is retried, and gives the job up at its last try', async t => {
  const failures = [
    new Error('away'),
    ...(['unavailable', 'upstream', 'limited'] as const).map(reason => new Refusal(reason, 'away')),
  ]
  for (const error of failures) {
    const early = await runOne(error)
    t.same(early.outcome, { id: 'one', status: 'retry', error: 'away' })
    t.equal(early.givenUp, 0)
    t.match(early.entries, [{ fields: { last: false } }])
    const last = await runOne(error, { isLastTry: true })
    t.same(last.outcome, { id: 'one', status: 'cancel', error: 'away' })
    t.equal(last.givenUp, 1)
  }
})

t.test('while the memory store is out of reach no job uses up a try', async t => {
  const away = new Refusal('unavailable', 'The memory store is out of reach')
  const { backend, entries } = createFakeBackend(true)
  let runs = 0
  const { run: _, ...rest } = define(throwing(away))
  const runBatch = async (): Promise<void> => {
    runs++
    throw away
  }
  const jobs = [buildJob('one'), buildJob('two', true)]
  for (const [handle, expectedRuns] of [
    [concurrently(define(runBatch)), 2],
    [sequentially(define(runBatch)), 2],
    // Each alone would wait for the store as the batch has.
    [asBatch({ ...rest, runBatch, groupOf }), 1],
  ] as const) {
    runs = 0
    for (const outcome of await handle(backend, jobs))
      t.match(outcome, {
        status: 'snooze',
        outage: { dependency: 'mongodb', reason: 'away', isAway: true },
      })
    t.equal(runs, expectedRuns)
  }
  t.ok(
    entries.every(({ level }) => level === 'debug'),
    'the breaker has told it',
  )
})

t.test('a job may retry what others do not', async t => {
  const refusal = new Refusal('conflict', 'others are changing it')
  const { outcome, givenUp } = await runOne(refusal, { alsoRetried: ['conflict'] })
  t.match(outcome, { status: 'retry' })
  t.equal(givenUp, 0)
})

t.test('a job that cannot be given up is tried again', async t => {
  const giveUp = throwing(new Error('the database is away'))
  const { outcome, entries } = await runOne(new Refusal('missing', 'no'), { giveUp })
  t.match(outcome, { status: 'retry', error: 'no' })
  t.equal(entries.length, 2)
})

t.test('a failure that giving up writes into a result leaves no dead letter', async t => {
  const { outcome } = await runOne(new Refusal('conflict', 'no'), { isDoneOnceGivenUp: true })
  t.same(outcome, { id: 'one', status: 'done' })
})

t.test('a job that fails since what it was for is gone is done, without a word', async t => {
  const { outcome, entries } = await runOne(new Error('no turn'), { isObsolete: async () => true })
  t.same(outcome, { id: 'one', status: 'done' })
  t.same(entries, [])
})

t.test('a job that asks for it is snoozed', async t => {
  const handle = sequentially(define(async () => ({ snoozeSeconds: 5 })))
  t.same(await handle(createFakeBackend().backend, [buildJob('one')]), [
    { id: 'one', status: 'snooze', snoozeSeconds: 5 },
  ])
})

t.test('a batch says of each job whether it has ended', async t => {
  const handle = asBatch({
    ...define(async () => {}),
    groupOf,
    runBatch: async () => new Set(['one']),
  })
  const { backend } = createFakeBackend()
  const removed = (id: string) => ({ id, status: 'done', ...(id === 'one' && { isRemoved: true }) })
  t.same(await handle(backend, [buildJob('one')]), [removed('one')])
  t.same(
    await handle(
      backend,
      ['one', 'two'].map(id => buildJob(id)),
    ),
    ['one', 'two'].map(removed),
  )
})

t.test('a batch that fails is run job by job: one that fails holds up no other', async t => {
  const runs: string[][] = []
  const handle = asBatch({
    ...define(async () => {}),
    groupOf,
    async runBatch(_backend, batch: readonly Job<'webhook'>[]) {
      runs.push(batch.map(({ id }) => id))
      if (batch.some(({ id }) => id === 'bad')) throw new Refusal('upstream', 'no')
    },
  })
  const { backend } = createFakeBackend()
  t.same(
    await handle(
      backend,
      ['one', 'bad', 'two'].map(id => buildJob(id)),
    ),
    [
      { id: 'one', status: 'done' },
      { id: 'bad', status: 'retry', error: 'no' },
      { id: 'two', status: 'done' },
    ],
  )
  t.same(runs, [['one', 'bad', 'two'], ['one'], ['bad'], ['two']])
  t.same(await handle(backend, [buildJob('one'), buildJob('two')]), [
    { id: 'one', status: 'done' },
    { id: 'two', status: 'done' },
  ])
  t.same(runs.at(-1), ['one', 'two'])
})

t.test('groups of a batch are run side by side, and fail by themselves', async t => {
  const slow = Promise.withResolvers<void>()
  const handle = asBatch({
    ...define(async () => {}),
    groupOf: ({ delivery }) => delivery[0]!,
    async runBatch(_backend, batch: readonly Job<'webhook'>[]) {
      if (batch[0]!.id.startsWith('b')) return slow.resolve()
      await slow.promise
      throw new Refusal('unavailable', 'away')
    },
  })
  const jobs = ['a1', 'b1', 'a2', 'b2'].map(id => buildJob(id))
  const outcomes = await handle(createFakeBackend(true).backend, jobs)
  t.match(
    outcomes.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    [
      { id: 'a1', status: 'snooze' },
      { id: 'a2', status: 'snooze' },
      { id: 'b1', status: 'done' },
      { id: 'b2', status: 'done' },
    ],
  )
})
