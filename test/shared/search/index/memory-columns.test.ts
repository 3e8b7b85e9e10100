import t from 'tap'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { predicateOf } from '#shared/domain/condition.ts'
import { metadataCondition } from '#shared/domain/filter.ts'
import { metadataTerms, type Metadata } from '#shared/domain/metadata.ts'
import { MemoryColumns } from '#shared/search/index/memory-columns.ts'

t.test('a random filter answers as a comparison of every field does', async t => {
  const random = seededRandom(17)
  const column = new MemoryColumns()
  const values = ['x', 'y', 'x=y', 1, 2, true, false, '1', 'true', '']
  const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)]!
  const records: (Metadata | undefined)[] = Array.from({ length: 400 }, () =>
    random() < 0.3
      ? undefined
      : Object.fromEntries(
          ['a', 'b', 'c'].filter(() => random() < 0.6).map(key => [key, pick(values)]),
        ),
  )
  for (const metadata of records) {
    const base = { id: '', tier: 1, role: 'user', text: 'text', at: 1, tokens: 1 } as const
    column.add({ ...base, ...(metadata && { metadata }) })
  }
  const kept = Uint32Array.from(records.keys()).filter(record => record % 3 !== 0)
  const picked = column.pick(kept)
  for (let round = 0; round < 200; round++) {
    const asked = Object.fromEntries(
      ['a', 'b', 'c']
        .filter(() => random() < 0.5)
        .map(key => [key, random() < 0.5 ? pick(values) : [pick(values), pick(values)]]),
    )
    const condition = metadataCondition(asked)
    if (!condition) continue
    const expected = (metadata: Metadata | undefined): boolean =>
      Object.entries(asked).every(([key, wanted]) =>
        [wanted].flat().some(value => metadata?.[key] === value),
      )
    const matches = predicateOf<number>(condition, test => column.metadataMatcher(test))
    t.same(
      records.map((_, record) => matches(record)),
      records.map(expected),
    )
    const matchesPicked = predicateOf<number>(condition, test => picked.metadataMatcher(test))
    t.same(
      Array.from(kept, (_, i) => matchesPicked(i)),
      Array.from(kept, record => expected(records[record])),
    )
  }
})

t.test('terms say the type of a value, and do not depend on the order of the fields', async t => {
  t.same(metadataTerms({ b: '1', a: 1 }), ['a=1', 'b="1"'])
  t.same(metadataTerms({ a: 1, b: '1' }), metadataTerms({ b: '1', a: 1 }))
})
