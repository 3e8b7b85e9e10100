import t from 'tap'
import { windowOf } from '#shared/domain/age-window.ts'

const hour = 3_600_000

t.test('hot under four hours, working under three days, long-term without end', async t => {
  const now = Date.now()
  t.equal(windowOf(now, now), 'hot')
  t.equal(windowOf(now + hour, now), 'hot', 'a clock that is ahead')
  t.equal(windowOf(now - 4 * hour + 1, now), 'hot')
  t.equal(windowOf(now - 4 * hour, now), 'working')
  t.equal(windowOf(now - 72 * hour + 1, now), 'working')
  t.equal(windowOf(now - 72 * hour, now), 'longterm')
  t.equal(windowOf(0, now), 'longterm')
})
