import t from 'tap'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { metadataTerms, parseMetadataFilter, type Metadata } from '#shared/domain/metadata.ts'
import { MetadataColumn } from '#shared/search/index/metadata-column.ts'

const filterOf = (filter: Record<string, unknown>) => parseMetadataFilter(filter)!

t.test('records without metadata take no memory', async t => {
  const column = new MetadataColumn()
  for (let record = 0; record < 10_000; record++) column.set(record, undefined)
  t.equal(column.bytes, 0)
  t.equal(column.get(7), undefined)
  t.equal(column.matcher(filterOf({ a: 1 }))(7), false)
})

t.test('equal metadata is stored once', async t => {
  const column = new MetadataColumn()
  column.set(0, { agent_id: 'a', n: 1 })
  const { bytes } = column
  for (let record = 1; record < 8; record++) column.set(record, { n: 1, agent_id: 'a' })
  t.ok(column.bytes - bytes <= 16 * 4)
  t.same(column.get(7), { agent_id: 'a', n: 1 })
})

t.test('a random filter answers as a comparison of every field does', async t => {
  const random = seededRandom(17)
  const column = new MetadataColumn()
  const values = ['x', 'y', 'x=y', 1, 2, true, false, '1', 'true', '']
  const pick = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)]!
  const records: (Metadata | undefined)[] = Array.from({ length: 400 }, () =>
    random() < 0.3
      ? undefined
      : Object.fromEntries(
          ['a', 'b', 'c'].filter(() => random() < 0.6).map(key => [key, pick(values)]),
        ),
  )
  records.forEach((metadata, record) => column.set(record, metadata))
  const kept = Uint32Array.from(records.keys()).filter(record => record % 3 !== 0)
  const picked = column.pick(kept)
  for (let round = 0; round < 200; round++) {
    const asked = Object.fromEntries(
      ['a', 'b', 'c']
        .filter(() => random() < 0.5)
        .map(key => [key, random() < 0.5 ? pick(values) : [pick(values), pick(values)]]),
    )
    const filter = parseMetadataFilter(asked)
    if (!filter) continue
    const expected = (metadata: Metadata | undefined): boolean =>
      Object.entries(asked).every(([key, wanted]) =>
        [wanted].flat().some(value => metadata?.[key] === value),
      )
    const matches = column.matcher(filter)
    t.same(
      records.map((_, record) => matches(record)),
      records.map(expected),
    )
    const matchesPicked = picked.matcher(filter)
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
