import t from 'tap'
import fc from 'fast-check'
import { createJsonCounter } from '#shared/core/json-bounds.ts'
import { BodyBudget, type BodyShare } from '#api/edge/body-budget.ts'
import { anyText } from '#test/support/samples/any-text.ts'

const bounds = { containersMax: 20, valuesMax: 40, fieldsMax: 9 }

/** Feeds a body in chunks of a length. @returns the refusal's message, or undefined */
function refusalOf(body: string, chunkLength = 7): string | undefined {
  const count = createJsonCounter(bounds)
  const bytes = Buffer.from(body)
  try {
    for (let at = 0; at < bytes.length; at += chunkLength)
      count(bytes.subarray(at, at + chunkLength))
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

t.test('each bound is named, and what is within it passes', async t => {
  t.equal(refusalOf(JSON.stringify(Array.from({ length: 19 }, () => ({})))), undefined)
  t.match(refusalOf(JSON.stringify(Array.from({ length: 20 }, () => ({})))), /20 objects and lists/)
  t.equal(refusalOf(JSON.stringify(Array.from({ length: 39 }, () => 1))), undefined)
  t.match(refusalOf(JSON.stringify(Array.from({ length: 41 }, () => 1))), /40 values/)
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`a:${n}`, ':']))
  t.equal(refusalOf(JSON.stringify([fields(9), { inner: fields(9), ...fields(8) }])), undefined)
  t.match(refusalOf(JSON.stringify({ inner: fields(9), ...fields(9) })), /more than 9 fields/)
  const wide = { containersMax: 99, valuesMax: 99 }
  createJsonCounter(wide)(Buffer.from('['.repeat(64)))
  t.throws(() => createJsonCounter(wide)(Buffer.from('['.repeat(65))), /64 levels/)
})

t.test('property: texts hold no values, wherever chunks end', async t => {
  fc.assert(
    fc.property(anyText(), fc.nat(9), (text, length) => {
      const hostile = JSON.stringify({ [`${text}[{`]: `\\"${text}",{{{[[[${','.repeat(50)}` })
      return refusalOf(hostile.repeat(3), length + 1) === undefined
    }),
  )
  t.pass('for all texts')
})

t.test('large bodies are admitted by their bytes, in their order', async t => {
  const budget = new BodyBudget(10, 115)
  const admitted: string[] = []
  const acquire = async (name: string, bytes: number): Promise<BodyShare['release']> => {
    const { hold, admit, release } = budget.open('a tenant')
    hold(bytes)
    await admit()
    admitted.push(name)
    return release
  }
  const first = await acquire('first', 6)
  const larger = acquire('larger than all', 99)
  const small = acquire('small', 2)
  const last = acquire('last', 8)
  await t.rejects(acquire('too much', 7), { reason: 'unavailable', message: /large bodies/ })
  t.same(admitted, ['first'], 'a small one does not overtake')
  first()
  first()
  const releaseLarger = await larger
  t.same(admitted, ['first', 'larger than all'])
  releaseLarger()
  ;(await small)()
  ;(await last)()
  t.same(admitted.slice(2), ['small', 'last'])
  const part = await acquire('part', 10)
  part(4)
  part(7)
  const rest = await acquire('what is not kept is free', 6)
  const all = acquire('all', 10)
  rest()
  t.notOk(admitted.includes('all'), 'a part is kept')
  part()
  part()
  ;(await all)()
  await acquire('all is free again', 10)
})

t.test('bodies that arrive share a bound, and who holds most gives way', async t => {
  const budget = new BodyBudget(10, 20)
  const arrive = (tenant: string, bytes: number) => {
    const share = budget.open(tenant)
    const state = { isDropped: false }
    share.dropped.catch(() => (state.isDropped = true))
    share.hold(bytes)
    return { ...share, state }
  }
  const silent = arrive('greedy', 6)
  const slow = arrive('greedy', 6)
  const other = arrive('other', 4)
  slow.hold(7)
  other.hold(8)
  await t.rejects(silent.dropped, { message: /large bodies/ })
  await t.rejects(silent.admit(), { message: /large bodies/ }, 'it is never parsed')
  silent.hold(60)
  silent.release()
  const third = arrive('third', 5)
  t.notOk(slow.state.isDropped || other.state.isDropped || third.state.isDropped, 'all have room')
  other.hold(9)
  await t.rejects(other.dropped, { message: /large bodies/ }, 'now it holds most')
  slow.release()
  third.hold(20)
  await third.admit()
  t.notOk(third.state.isDropped)
})
