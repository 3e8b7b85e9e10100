import t from 'tap'
import { releaseStartMemory } from '#shared/core/process-lifecycle.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.test('what only the start needed is collected once the process is idle', async t => {
  const dropped = new WeakRef(Array.from({ length: 100_000 }, (_, n) => ({ n })))
  const seen = { isServing: true, looks: 0, isReleased: false }
  const released = releaseStartMemory(() => {
    seen.looks++
    return seen.isServing
  }, 20).then(() => (seen.isReleased = true))
  // The interval of the look does not hold a process that ends.
  const held = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(held))
  await waitUntil('it has looked twice', () => seen.looks >= 2)
  t.notOk(seen.isReleased, 'not while a request is served')
  seen.isServing = false
  await released
  t.equal(dropped.deref(), undefined)
  t.equal((globalThis as { gc?: unknown }).gc, undefined, 'no function is left behind')
})
