import t from 'tap'
import fc from 'fast-check'
import { copyIdOf, isUuid, memoryIdOf, mintId, randomBase62 } from '#shared/core/ids.ts'

t.test('a memory id is a UUIDv7 of the operation’s time, always the same', async t => {
  const operation = mintId()
  fc.assert(
    fc.property(fc.nat(0xffffff), index => {
      const id = memoryIdOf(operation, index)
      return (
        id === memoryIdOf(operation, index) &&
        isUuid(id) &&
        id.slice(0, 13) === operation.slice(0, 13) &&
        id[14] === '7' &&
        '89ab'.includes(id[19]!)
      )
    }),
  )
  t.not(memoryIdOf(operation, 0), memoryIdOf(mintId(), 0))
})

t.test('ids of one operation sort in the order of their index', async t => {
  const operation = mintId()
  fc.assert(
    fc.property(fc.nat(0xfffffe), fc.nat(0xfffffe), (one, other) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      return low === high || memoryIdOf(operation, low) < memoryIdOf(operation, high)
    }),
  )
  t.ok(memoryIdOf(operation, 63) < memoryIdOf(operation, 64))
})

t.test('random keys use the whole alphabet and do not repeat', async t => {
  const sample = Array.from({ length: 200 }, () => randomBase62(32))
  t.equal(new Set(sample).size, 200)
  t.equal(new Set(sample.join('')).size, 62)
  t.ok(sample.every(text => /^[0-9A-Za-z]{32}$/.test(text)))
})

t.test('a copy has an id of its operation and its source, in the order of its index', async t => {
  const [operation, source] = [mintId(), mintId()]
  fc.assert(
    fc.property(fc.nat(0xfffffe), index => {
      const id = copyIdOf(operation, index, source)
      return (
        isUuid(id) &&
        id === copyIdOf(operation, index, source) &&
        id !== copyIdOf(operation, index, operation) &&
        id < copyIdOf(operation, index + 1, source)
      )
    }),
  )
  t.not(copyIdOf(operation, 0, source), copyIdOf(mintId(), 0, source))
})
