import t from 'tap'
import { Breaker, type BreakerState } from '#shared/core/breaker.ts'
import { registry } from '#shared/core/metrics.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** A dependency whose answers to probes are decided by the test. */
function startDependency(name: string, openMs = 400) {
  let answer: () => Promise<unknown> = async () => {}
  let probes = 0
  const states: BreakerState[] = []
  const breaker = new Breaker({
    name,
    probe: () => {
      probes++
      return answer()
    },
    isRefusal: error => (error as Error).message === 'no such model',
    onChange: state => void states.push(state),
    slowMs: 50,
    openMs,
    intervalMs: 20,
  })
  t.teardown(() => breaker.stop())
  return {
    breaker,
    states,
    probes: () => probes,
    answer: (next: () => Promise<unknown>) => void (answer = next),
  }
}

const fail = (): Promise<never> => Promise.reject(new Error('away'))
const never = (): Promise<never> => new Promise(() => {})
const run = (breaker: Breaker, work: () => Promise<unknown>) =>
  breaker.run(
    work,
    () => new Error('refused'),
    () => true,
  )
const gaugeOf = async (name: string): Promise<number | undefined> => {
  const text = await registry.metrics()
  const line = text.split('\n').find(one => one.includes(`{dependency="${name}"}`))
  return line === undefined ? undefined : Number(line.split(' ')[1])
}

t.test('after two failures a probe opens it; a later one closes it without any caller', async t => {
  const { breaker, states, answer, probes } = startDependency('one')
  answer(fail)
  await t.rejects(run(breaker, fail), /away/)
  t.equal(breaker.state, 'closed', 'one failure is none')
  t.equal(probes(), 0)
  await t.rejects(run(breaker, fail), /away/)
  await waitUntil('it is open', async () => breaker.state === 'open')
  t.equal(await gaugeOf('one'), 2)
  let calls = 0
  await t.rejects(
    run(breaker, async () => calls++),
    /refused/,
  )
  t.equal(calls, 0, 'nothing is asked of it while it is open')
  answer(async () => {})
  await waitUntil('it is closed', async () => breaker.state === 'closed')
  t.equal(await gaugeOf('one'), 0)
  t.equal(await run(breaker, async () => 7), 7)
  t.same(states, ['open', 'closed'])
})

t.test('a success between two failures, and a dependency that answers, keep it closed', async t => {
  const { breaker, states, probes } = startDependency('two')
  await t.rejects(run(breaker, fail))
  await run(breaker, async () => {})
  await t.rejects(run(breaker, fail))
  t.equal(probes(), 0)
  breaker.failed()
  await waitUntil('it is probed', async () => probes() === 1)
  t.equal(breaker.state, 'closed')
  t.same(states, [])
})

t.test('one that answers late is slow and serves callers that wait', async t => {
  const { breaker, answer, states } = startDependency('three', 60_000)
  let release = (): void => {}
  answer(() => new Promise<void>(resolve => (release = resolve)))
  breaker.failed()
  breaker.failed()
  await waitUntil('it is slow', async () => breaker.state === 'slow')
  release()
  t.equal(await run(breaker, async () => 1), 1)
  answer(async () => {})
  await waitUntil('it is closed', async () => breaker.state === 'closed')
  t.same(states, ['slow', 'closed'])
})

t.test('one that never answers is slow, then open', async t => {
  const { breaker, answer, states } = startDependency('four')
  answer(never)
  breaker.failed()
  breaker.failed()
  await waitUntil('it is open', async () => breaker.state === 'open')
  t.same(states, ['slow', 'open'])
})

t.test('one that refuses tells why; a check after a failure needs no second one', async t => {
  const { breaker, answer, states, probes } = startDependency('five')
  t.equal(await breaker.check(), 'closed')
  t.equal(await breaker.check(), 'closed')
  t.equal(probes(), 1, 'a second later it would be probed again')
  answer(() => Promise.reject(new Error('no such model')))
  breaker.failed()
  breaker.failed()
  await waitUntil('it refuses', async () => breaker.state === 'refused')
  t.match(breaker, { isAway: true, reason: 'no such model' })
  t.equal(await gaugeOf('five'), 3)
  const asked = probes()
  t.equal(await breaker.check(), 'refused')
  t.equal(probes(), asked, 'the next probe comes by itself')
  t.same(states, ['refused'])
  breaker.stop()
  t.equal(await gaugeOf('five'), undefined)
})
