import fc from 'fast-check'
import t from 'tap'
import { createLabels } from '#shared/search/index/labels.ts'

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
        let labels = createLabels()
        for (const [record, one] of all.entries()) labels.put(record, one)
        labels.trim(all.length)
        t.same(
          all.map((_, record) => labels.of(record)),
          all,
        )
        const kept = [...all.keys()].filter(() => keep.next().value)
        labels = labels.pick(Uint32Array.from(kept))
        labels.put(kept.length, { tags: ['late'], author: 'x' })
        t.same(
          kept.map((_, record) => labels.of(record)),
          kept.map(record => all[record]),
        )
        t.same(labels.of(kept.length), { tags: ['late'], author: 'x' })
      },
    ),
    { numRuns: 50 },
  )
})

t.test('where no memory has any they take no room', async t => {
  const labels = createLabels()
  for (let record = 0; record < 1_000; record++) labels.put(record, {})
  t.equal(labels.bytes, 0)
  t.same(labels.of(999), {})
})
