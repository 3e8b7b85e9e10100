import fc from 'fast-check'
import t from 'tap'
import { KeyTable } from '#shared/search/columns/key-table.ts'

const key = (number: number) => Uint32Array.of(number & 3, number)

t.test('finds the keys that were added and not dropped, in any order', async t => {
  const step = fc.record({ isAdd: fc.boolean(), number: fc.integer({ min: 0, max: 400 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), steps => {
      const table = new KeyTable(2)
      const model = new Map<number, number>()
      for (const { isAdd, number } of steps) {
        const entry = model.get(number)
        if (isAdd && entry === undefined) model.set(number, table.add(key(number)))
        if (!isAdd && entry !== undefined) {
          table.drop(entry)
          model.delete(number)
        }
      }
      for (let number = 0; number <= 400; number++) {
        if (table.find(key(number)) !== (model.get(number) ?? -1)) return false
      }
      return true
    }),
  )
  t.pass()
})

t.test('picked entries are numbered from 0', async t => {
  const table = new KeyTable(2)
  for (let number = 0; number < 100; number++) table.add(key(number))
  const picked = table.pick(Uint32Array.of(90, 7))
  t.equal(picked.count, 2)
  t.equal(picked.find(key(90)), 0)
  t.equal(picked.find(key(7)), 1)
  t.equal(picked.find(key(8)), -1)
  t.ok(picked.bytes < table.bytes)
})

t.test('a key is read back, also after its entry is dropped', async t => {
  const table = new KeyTable(2)
  const entry = table.add(key(77))
  table.drop(entry)
  const words = new Uint32Array(2)
  table.copyKey(entry, words)
  t.same(words, key(77))
  t.equal(table.find(key(77)), -1)
})
