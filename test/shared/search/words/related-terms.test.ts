import t from 'tap'

// A module of its own: other files of this process may have built the tables.
const fresh: string = '#shared/search/words/related-terms.ts?fresh'
const { buildRelatedTerms, relatedTerms } = (await import(
  fresh
)) as typeof import('#shared/search/words/related-terms.ts')

t.test('a search finds all terms while the tables are built in steps', async t => {
  const steps = buildRelatedTerms()
  for (let step = 0; step < 3; step++) t.notOk(steps.next().done)
  const related = relatedTerms('instrument')
  t.ok(related.some(({ term }) => term === 'cello'))
  t.same(
    related.map(({ weight }) => weight),
    related.map(({ weight }) => weight).toSorted((one, other) => other - one),
    'the closest come first',
  )
  t.ok(steps.next().done, 'nothing is left to build')
  t.equal(relatedTerms('instrument'), related)
})

t.test('most words have none', async t => {
  t.same(relatedTerms('qwertz'), [])
})
