import fc from 'fast-check'
import t from 'tap'
import { TagAuthorColumn } from '#shared/search/index/tag-author-column.ts'

const tagsAndAuthor = fc.oneof(
  fc.constant({}),
  fc.record({ tags: fc.array(fc.constantFrom('a', 'b', '"', 'a,b')), author: fc.string() }),
)

t.test('records keep their tags and author through picking and trimming', async t => {
  fc.assert(
    fc.property(
      fc.array(tagsAndAuthor, { maxLength: 40 }),
      fc.infiniteStream(fc.boolean()),
      (all, keep) => {
        let column = new TagAuthorColumn()
        for (const [record, one] of all.entries()) column.set(record, one)
        column.trim(all.length)
        t.same(
          all.map((_, record) => column.get(record)),
          all,
        )
        const picked = [...all.keys()].filter(() => keep.next().value)
        column = column.pick(Uint32Array.from(picked))
        column.set(picked.length, { tags: ['late'], author: 'x' })
        t.same(
          picked.map((_, record) => column.get(record)),
          picked.map(record => all[record]),
        )
        t.same(column.get(picked.length), { tags: ['late'], author: 'x' })
      },
    ),
    { numRuns: 50 },
  )
})

t.test('takes no memory while no record has tags or author', async t => {
  const column = new TagAuthorColumn()
  for (let record = 0; record < 1_000; record++) column.set(record, {})
  t.equal(column.bytes, 0)
  t.same(column.get(999), {})
})
