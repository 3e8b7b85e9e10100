import t from 'tap'
import fc from 'fast-check'
import { toTaggedFact } from '#shared/org/pipeline/tag-facts.ts'
import { reviewThreshold } from '#shared/org/review-threshold.ts'

const tags = ['finance', 'people', 'launch'].map(label => ({ id: `id of ${label}`, label }))
const fact = { text: 'a fact', confidence: 0.3 }
const likely = (...likelihoods: number[]) =>
  Object.fromEntries(likelihoods.map((likelihood, index) => [tags[index]!.id, likelihood]))

t.test('sure answers decide, doubtful ones count and are told as doubt', async t => {
  t.match(toTaggedFact(fact, tags, likely(0.98, 0.01, 0.1)), { tags: ['finance'], confidence: 0.9 })
  t.match(toTaggedFact(fact, tags, likely(0, 0, 0)), { tags: [], confidence: 1 })
  t.match(toTaggedFact(fact, tags, likely(0.41, 0, 0)), { tags: ['finance'], confidence: 0.59 })
  t.match(toTaggedFact(fact, tags, likely(0, 0.5, 0)), { tags: ['people'], confidence: 0.5 })
  t.match(toTaggedFact(fact, tags, likely(0, 0)), { tags: ['launch'], confidence: 0.5 })
  t.match(toTaggedFact(fact, [], {}), { tags: [], confidence: 0.3 }, 'no tags: the extractor’s')
})

t.test('a fact is everybody’s only when every tag was clearly refused', async t => {
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
