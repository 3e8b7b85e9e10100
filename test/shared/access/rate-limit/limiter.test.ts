import fc from 'fast-check'
import t from 'tap'
import {
  createLimiter,
  type Limiter,
  type RateLimitResult,
  type PointStore,
  type Quota,
} from '#shared/access/rate-limit/limiter.ts'
import { createPointStore } from '#shared/access/rate-limit/rate-limit-store.postgres.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const { postgres } = await createTestBackend(t)
const failures: unknown[] = []
let asked = 0

const storeOf = (quota: Quota): PointStore => {
  const onError = (error: unknown) => void failures.push(error)
  const store = createPointStore(postgres.query, { name: 'test', quota, onError })
  return { take: (...what) => (asked++, store.take(...what)) }
}

/** A limiter as one process has it. */
const processOf = (quotas: Quota[], subjectsMax = 100): Limiter =>
  createLimiter(
    quotas.map(quota => ({ ...quota, store: storeOf(quota) })),
    // A store that is slow lets requests pass, and here none may.
    { subjectsMax, storeTimeoutMs: 60_000 },
  )

/** The database's windows are told by the clock of whoever asks: one that nothing else moves. */
let ahead = 0
const { now } = Date
const begun = now()
Date.now = () => begun + ahead
t.teardown(() => (Date.now = now))

const allowed = (verdicts: RateLimitResult[]): number =>
  verdicts.filter(verdict => verdict.allowed).length
let subjects = 0
const anyone = (): string => `subject ${++subjects}`

t.test('several processes pass no more than their trust above a quota, nor far less', async t => {
  const quota = { points: 50, seconds: 30 }
  const turn = fc.record({
    process: fc.nat({ max: 2 }),
    together: fc.integer({ min: 1, max: 30 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 20 }), async turns => {
      ahead += 31_000
      const processes = [processOf([quota]), processOf([quota]), processOf([quota])]
      const subject = anyone()
      const verdicts: RateLimitResult[] = []
      for (const { process, together } of turns) {
        const takes = Array.from({ length: together }, () => processes[process]!.consume(subject))
        verdicts.push(...(await Promise.all(takes)))
      }
      const passed = allowed(verdicts)
      // One point on trust for each further process; what others hold of the last shares is not spent.
      const least = Math.min(verdicts.length, quota.points - 2 * Math.ceil(quota.points * 0.05))
      return passed <= quota.points + 2 && passed >= least
    }),
    { numRuns: 40 },
  )
  t.same(failures, [])
})

t.test('one process is exact, and a window later everything is there again', async t => {
  const limiter = processOf([{ points: 50, seconds: 30 }])
  const subject = anyone()
  for (let window = 0; window < 3; window++) {
    const verdicts = await Promise.all(Array.from({ length: 70 }, () => limiter.consume(subject)))
    t.equal(allowed(verdicts), 50)
    t.match(limiter.knownRefusal(subject), { allowed: false, remaining: 0, refusedCount: 21 })
    ahead += 29_000
    t.equal((await limiter.consume(subject)).allowed, false, 'not a second early')
    ahead += 1_100
    t.equal(limiter.knownRefusal(subject), undefined)
  }
})

t.test('of two quotas the tighter one counts, and a refusal takes from neither', async t => {
  const quotas = [
    { points: 10, seconds: 10 },
    { points: 25, seconds: 60 },
  ]
  const limiter = processOf(quotas)
  const subject = anyone()
  const many = (): Promise<RateLimitResult[]> =>
    Promise.all(Array.from({ length: 30 }, () => limiter.consume(subject, 'an owner')))
  t.equal(allowed(await many()), 10)
  t.match(await limiter.consume(subject), { quota: quotas[0], owner: 'an owner' })
  ahead += 10_100
  t.equal(allowed(await many()), 10)
  ahead += 10_100
  t.equal(allowed(await many()), 5)
  const refused = await limiter.consume(subject)
  t.match(refused, { allowed: false, quota: quotas[1] })
  t.ok(refused.resetInMs > 35_000 && refused.resetInMs <= 40_000, String(refused.resetInMs))
})

t.test('a subject that is refused is refused without asking', async t => {
  const limiter = processOf([{ points: 20, seconds: 30 }])
  const subject = anyone()
  await Promise.all(Array.from({ length: 21 }, () => limiter.consume(subject)))
  const before = asked
  for (let index = 0; index < 50; index++) t.equal((await limiter.consume(subject)).allowed, false)
  t.equal(asked, before)
})

t.test('a new process learns at its second point that all is used', async t => {
  const quota = { points: 50, seconds: 30 }
  const subject = anyone()
  const [first, second] = [processOf([quota]), processOf([quota])]
  for (let index = 0; index < 50; index++) await first.consume(subject)
  t.equal((await second.consume(subject)).allowed, true, 'on trust')
  t.equal((await second.consume(subject)).allowed, false)
})

t.test('however many subjects there are, only so many are remembered', async t => {
  const limiter = processOf([{ points: 1, seconds: 30 }], 100)
  const names = Array.from({ length: 101 }, anyone)
  for (const name of names) await limiter.consume(name)
  t.equal(limiter.knownRefusal(names[0]!), undefined, 'the one asked longest ago is forgotten here')
  t.match(limiter.knownRefusal(names[1]!), { allowed: false })
  t.match(limiter.knownRefusal(names[100]!), { allowed: false })
})

t.test('without its store a process lets the whole quota pass, once', async t => {
  const quota = { points: 50, seconds: 30 }
  const away: PointStore = { take: () => Promise.reject(new Error('away')) }
  const limiter = createLimiter([{ ...quota, store: away }], { subjectsMax: 10 })
  const takes = Array.from({ length: 80 }, () => limiter.consume('anyone'))
  t.equal(allowed(await Promise.all(takes)), 50)
  ahead += 31_000
  t.equal((await limiter.consume('anyone')).allowed, true)
})
