import t from 'tap'
import { createSteadyClock } from '#shared/storage/queue/open-queue.ts'

const realNow = Date.now
t.teardown(() => (Date.now = realNow))
const shiftWallClock = (ms: number): void => void (Date.now = () => realNow() + ms)
const hour = 3_600_000

t.test('time goes on when the wall clock is set back, and follows it ahead', async t => {
  const clock = createSteadyClock()
  const first = clock.now()
  t.ok(Math.abs(first - realNow()) < hour / 4)
  shiftWallClock(-hour)
  const second = clock.now()
  t.ok(second >= first && second < first + hour / 2)
  shiftWallClock(hour)
  const third = clock.now()
  t.ok(third >= first + hour)
  shiftWallClock(0)
  t.ok(clock.now() >= third)
})
