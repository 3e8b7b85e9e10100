import fc from 'fast-check'
import t from 'tap'
import { InternedColumn } from '#shared/search/columns/interned-column.ts'

const newColumn = () => new InternedColumn<readonly string[]>(JSON.stringify)
const value = fc.option(fc.array(fc.constantFrom('a', 'b', '"', 'a,b')), { nil: undefined })

t.test('records keep their values through picking and trimming', async t => {
  fc.assert(
    fc.property(
      fc.array(value, { maxLength: 40 }),
      fc.infiniteStream(fc.boolean()),
      (all, keep) => {
        let column = newColumn()
        for (const [record, one] of all.entries()) column.set(record, one)
        column.trim(all.length)
        t.same(
          all.map((_, record) => column.get(record)),
          all,
        )
        const picked = [...all.keys()].filter(() => keep.next().value)
        column = column.pick(Uint32Array.from(picked))
        column.set(picked.length, ['late'])
        t.same(
          picked.map((_, record) => column.get(record)),
          picked.map(record => all[record]),
        )
        t.same(column.get(picked.length), ['late'])
        const matches = column.matcher(one => one.includes('a'))
        t.same(
          picked.map((_, record) => matches(record)),
          picked.map(record => all[record]?.includes('a') ?? false),
        )
      },
    ),
    { numRuns: 50 },
  )
})

t.test('takes no memory while no record has a value, and stores equal ones once', async t => {
  const column = newColumn()
  for (let record = 0; record < 10_000; record++) column.set(record, undefined)
  t.equal(column.bytes, 0)
  t.equal(column.get(7), undefined)
  t.equal(column.matcher(() => true)(7), false)
  column.set(0, ['a'])
  const { bytes } = column
  for (let record = 1; record < 8; record++) column.set(record, ['a'])
  t.ok(column.bytes - bytes <= 16 * 4)
})
