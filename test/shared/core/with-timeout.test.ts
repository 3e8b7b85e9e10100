import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { withTimeout } from '#shared/core/with-timeout.ts'

const never = (): never => {
  throw new Error('not in time')
}

/** Timers of this process that have not fired. */
const openTimers = (): number =>
  process.getActiveResourcesInfo().filter(name => name === 'Timeout').length

t.test('work that ends in time gives its value or its error, and leaves no timer', async t => {
  const before = openTimers()
  t.equal(await withTimeout(Promise.resolve('done'), 60_000, never), 'done')
  await t.rejects(withTimeout(Promise.reject(new Error('broken')), 60_000, never), {
    message: 'broken',
  })
  t.equal(openTimers(), before)
})

t.test('work that takes longer gives what the caller chose: a value or an error', async t => {
  const { promise } = Promise.withResolvers<string>()
  t.equal(await withTimeout(promise, 5, () => 'late'), 'late')
  await t.rejects(withTimeout(promise, 5, never), { message: 'not in time' })
})

t.test('work that fails after the time is over makes no unhandled rejection', async t => {
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): number => unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  t.teardown(() => process.off('unhandledRejection', onUnhandled))
  const { promise, reject } = Promise.withResolvers<string>()
  t.equal(await withTimeout(promise, 5, () => 'late'), 'late')
  reject(new Error('too late'))
  await delay(10)
  t.same(unhandled, [])
})

t.test('an answer that came while the process was busy is read before time runs out', async t => {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const answer = new Promise<string>(resolve => {
    port1.on('message', resolve)
  })
  const result = withTimeout(answer, 5, () => 'late')
  port2.postMessage('answer')
  const until = performance.now() + 30
  while (performance.now() < until);
  t.equal(await result, 'answer')
})
