import t from 'tap'
import { recencyWindow } from '#shared/domain/memory.ts'

const hour = 3_600_000

t.test('hot under four hours, working under three days, long-term without end', async t => {
  const now = Date.UTC(2026, 10, 20)
  t.equal(recencyWindow(now, now), 'hot')
  t.equal(recencyWindow(now + hour, now), 'hot', 'a clock that is ahead')
  t.equal(recencyWindow(now - 4 * hour + 1, now), 'hot')
  t.equal(recencyWindow(now - 4 * hour, now), 'working')
  t.equal(recencyWindow(now - 72 * hour + 1, now), 'working')
  t.equal(recencyWindow(now - 72 * hour, now), 'longterm')
  t.equal(recencyWindow(0, now), 'longterm')
})
