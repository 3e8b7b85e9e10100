import t from 'tap'
import { runInSlices } from '#shared/core/event-loop.ts'
import { countTurns } from '#test/support/checks/step-clock.ts'

let time = 0
performance.now = () => time
t.teardown(() => Reflect.deleteProperty(performance, 'now'))

/** Steps that take a millisecond each, by a clock that nothing else moves; `onStep` is called after each. */
function* work(steps: number, onStep: () => void): Generator<void, number, void> {
  for (let step = 0; step < steps; step++) {
    time++
    onStep()
    yield
  }
  return steps
}

t.test('long work lets the event loop turn, and ends with its result', async t => {
  const { turns, stop } = countTurns()
  let steps = 0
  t.equal(await runInSlices(work(40, () => steps++)), 40)
  t.equal(steps, 40)
  stop()
  t.ok(turns() >= 10, `${turns()} turns`)
})

t.test('work without a pause of its own ends in the turn in which it began', async t => {
  const { turns, stop } = countTurns()
  t.equal(
    await runInSlices(
      (function* () {
        yield
        return 'short'
      })(),
    ),
    'short',
  )
  t.equal(turns(), 0)
  stop()
})

t.test('of several long works one gets a turn, in rotation', async t => {
  const turnOf: string[] = []
  const { turns, stop } = countTurns()
  const run = (name: string) => runInSlices(work(20, () => turnOf.push(`${turns()} ${name}`)))
  await Promise.all(['one', 'two', 'three'].map(run))
  stop()
  const later = turnOf.filter(entry => !entry.startsWith('0 '))
  const namesByTurn = Map.groupBy(later, entry => entry.split(' ')[0])
  for (const entries of namesByTurn.values())
    t.equal(new Set(entries).size, 1, 'one work in a turn')
  const order = [...namesByTurn.values()].map(entries => entries[0]!.split(' ')[1])
  t.same(order.slice(0, 6), ['one', 'two', 'three', 'one', 'two', 'three'])
})

t.test('a short work is not queued behind long ones', async t => {
  let isLongOver = false
  const long = Promise.all(Array.from({ length: 5 }, () => runInSlices(work(30, () => {})))).then(
    () => (isLongOver = true),
  )
  await new Promise(resolve => setImmediate(resolve))
  t.equal(await runInSlices(work(1, () => {})), 1)
  t.notOk(isLongOver)
  await long
})

t.test('an error of a step is that of the work, and others go on', async t => {
  const failing = function* (): Generator<void, never, void> {
    yield* work(10, () => {})
    throw new Error('step')
  }
  const other = runInSlices(work(20, () => {}))
  await t.rejects(runInSlices(failing()), { message: 'step' })
  t.equal(await other, 20)
})
