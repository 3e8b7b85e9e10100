import fc from 'fast-check'
import t from 'tap'
import { defaultWeights, fuseSignals, type Signals } from '#shared/search/ranking/signals.ts'

const signals: Signals = {
  similarity: 0.5,
  words: 0.4,
  context: 0.1,
  time: 0,
  speakerMatch: 0,
  answerType: 0,
  recency: 0,
  question: 0,
  informativeness: 1,
}
const relevance = (changes: Partial<Signals>) =>
  fuseSignals({ ...signals, ...changes }, defaultWeights)

t.test('every signal raises the relevance of a row, only asking lowers it', async t => {
  const unit = fc.double({ min: 0, max: 1, noNaN: true })
  const names = Object.keys(signals) as (keyof Signals)[]
  fc.assert(
    fc.property(
      fc.tuple(...names.map(() => unit)),
      fc.constantFrom(...names),
      unit,
      (values, name, more) => {
        const some = Object.fromEntries(names.map((key, i) => [key, values[i]])) as Signals
        const raised = { ...some, [name]: Math.max(some[name], more) }
        const [least, most] = name === 'question' ? [raised, some] : [some, raised]
        return fuseSignals(most, defaultWeights) >= fuseSignals(least, defaultWeights) - 1e-12
      },
    ),
  )
  t.pass()
})

t.test('an old memory that fits clearly better beats a new one', async t => {
  t.ok(relevance({ similarity: 0.6 }) > relevance({ similarity: 0.5, recency: 1 }))
})

t.test('of near equals the newer one wins', async t => {
  t.ok(relevance({ similarity: 0.5, recency: 1 }) > relevance({ similarity: 0.501 }))
})

t.test('supporting signals do not lift an unrelated row', async t => {
  const unrelated = { similarity: 0, words: 0, context: 0 }
  t.equal(relevance({ ...unrelated, speakerMatch: 1, answerType: 1, recency: 1 }), 0)
  t.ok(relevance({ ...unrelated, time: 1 }) > 0, 'but a time that is named is asked for')
  t.ok(relevance({ ...unrelated, time: 1 }) < relevance({}))
})
