import fc from 'fast-check'
import t from 'tap'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'

const calibration = { unrelated: 0.1, same: 0.8, floor: 0.3 }

t.test('0 for unrelated, 1 for the same meaning', async t => {
  t.equal(scoreFromCosine(-1, calibration), 0)
  t.equal(scoreFromCosine(0.1, calibration), 0)
  t.equal(scoreFromCosine(0.8, calibration), 1)
  t.equal(scoreFromCosine(1, calibration), 1)
  t.ok(Math.abs(scoreFromCosine(0.45, calibration) - 0.5) < 1e-9)
})

t.test('monotone', async t => {
  const cosine = fc.double({ min: -1, max: 1, noNaN: true })
  fc.assert(
    fc.property(cosine, cosine, (one, other) => {
      const [less, more] = one < other ? [one, other] : [other, one]
      return scoreFromCosine(less, calibration) <= scoreFromCosine(more, calibration)
    }),
  )
  t.pass()
})
