import t from 'tap'
import fc from 'fast-check'
import { toTaggedFact } from '#shared/org/pipeline/tag-facts.ts'
import { reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'

const tags = ['finance', 'people', 'launch'].map(label => ({ id: `id of ${label}`, label }))
const fact = { text: 'a fact', confidence: 1 }
const likely = (...likelihoods: number[]) =>
  Object.fromEntries(likelihoods.map((likelihood, index) => [tags[index]!.id, likelihood]))

t.test('sure answers decide, doubtful ones count and are reported as doubt', async t => {
  t.match(toTaggedFact(fact, tags, likely(0.98, 0.01, 0.1)), { tags: ['finance'], confidence: 0.9 })
  t.match(toTaggedFact(fact, tags, likely(0, 0, 0)), { tags: [], confidence: 1 })
  t.match(toTaggedFact(fact, tags, likely(0.41, 0, 0)), { tags: ['finance'], confidence: 0.59 })
  t.match(toTaggedFact(fact, tags, likely(0, 0.5, 0)), { tags: ['people'], confidence: 0.5 })
  t.match(toTaggedFact(fact, tags, likely(0, 0)), { tags: ['launch'], confidence: 0.5 })
  const doubted = { ...fact, confidence: 0.3 }
  t.match(toTaggedFact(doubted, [], {}), { tags: [], confidence: 0.3 }, 'no tags: the extractor’s')
  t.match(toTaggedFact(doubted, tags, likely(0, 0, 0)), { tags: [], confidence: 0.3 }, 'the least')
})

t.test('a fact is open to all only when every tag was clearly refused', async t => {
  const likelihood = fc.double({ min: 0, max: 1, noNaN: true })
  const property = fc.property(fc.tuple(likelihood, likelihood, likelihood), likelihoods => {
    const tagged = toTaggedFact(fact, tags, likely(...likelihoods))
    const doubtful = tagged.confidence < reviewThreshold
    const clear = likelihoods.every(one => one <= 1 - reviewThreshold)
    return (tagged.tags.length === 0) === clear && !(doubtful && tagged.tags.length === 0)
  })
  fc.assert(property, { numRuns: 1_000 })
  t.pass('1,000 answers')
})

t.test('untagged without a clear no to every tag is unclear', async t => {
  t.match(toTaggedFact(fact, tags, likely(0.3, 0, 0)), { tags: [], unclear: true })
  t.notOk('unclear' in toTaggedFact(fact, tags, likely(0.2, 0, 0)))
  t.notOk('unclear' in toTaggedFact(fact, tags, likely(0.9, 0.3, 0)), 'it is not open')
})

t.test('inherited tags apply whatever the answers are, by former labels too', async t => {
  const inherited = { ...fact, inheritedTags: ['money', 'gone'] }
  const renamed = [{ id: 'id of finance', label: 'finance', former: ['money'] }]
  t.match(toTaggedFact(inherited, renamed, { 'id of finance': 0 }), {
    tags: ['finance', 'gone'],
    tagIds: ['id of finance', 'gone'],
  })
})
