import fc from 'fast-check'
import t from 'tap'
import { createTagAuthorColumn } from '#shared/search/index/tag-author-column.ts'

const label = fc.oneof(
  fc.constant({}),
  fc.record({ tags: fc.array(fc.constantFrom('a', 'b', '"', 'a,b')), author: fc.string() }),
)

t.test('records keep their tags and author through picking and trimming', async t => {
  fc.assert(
    fc.property(
      fc.array(label, { maxLength: 40 }),
      fc.infiniteStream(fc.boolean()),
      (all, keep) => {
        let labels = createTagAuthorColumn()
        for (const [record, one] of all.entries()) labels.set(record, one)
        labels.trim(all.length)
        t.same(
          all.map((_, record) => labels.get(record)),
          all,
        )
        const kept = [...all.keys()].filter(() => keep.next().value)
        labels = labels.pick(Uint32Array.from(kept))
        labels.set(kept.length, { tags: ['late'], author: 'x' })
        t.same(
          kept.map((_, record) => labels.get(record)),
          kept.map(record => all[record]),
        )
        t.same(labels.get(kept.length), { tags: ['late'], author: 'x' })
      },
    ),
    { numRuns: 50 },
  )
})

t.test('where no memory has any they take no room', async t => {
  const labels = createTagAuthorColumn()
  for (let record = 0; record < 1_000; record++) labels.set(record, {})
  t.equal(labels.bytes, 0)
  t.same(labels.get(999), {})
})
