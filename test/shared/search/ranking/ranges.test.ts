import fc from 'fast-check'
import t from 'tap'
import {
  calibrateForVault,
  scoreFromCosine,
  buildSearchRanges,
  judgeRows,
} from '#shared/search/ranking/ranges.ts'
import { scoreWords } from '#shared/search/ranking/score-words.ts'
import { conditionOf } from '#shared/domain/filter.ts'
import { runAtOnce } from '#shared/core/event-loop.ts'
import { indexOf } from '#test/support/samples/ranked.ts'

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

t.test(
  'where all texts of a vault are near to what is asked, only what stands out scores',
  async t => {
    const vector = (near: number, own: number) => {
      const row = new Float32Array(1_024)
      row[0] = near
      row[own] = Math.sqrt(1 - near * near)
      return row
    }
    const rowsOf = (near: number) =>
      Array.from({ length: 64 }, (_, i) => ({ text: `text ${i}`, vector: vector(near, 1 + i) }))
    const query = vector(1, 1)
    const measured = { unrelated: 0.3, same: 0.8, floor: 0.4, typical: 0.1 }
    const scaleOf = (rows: ReturnType<typeof rowsOf>) => {
      const index = indexOf(rows)
      return calibrateForVault(buildSearchRanges([index], {}), measured)(query)
    }
    t.same(scaleOf(rowsOf(0.1)), measured)
    t.same(scaleOf(rowsOf(0)), measured, 'never towards 0')
    const near = scaleOf(rowsOf(0.7))
    t.equal(scoreFromCosine(0.7, near), 0)
    t.ok(scoreFromCosine(0.95, near) > 0.5)
    t.same(scaleOf(rowsOf(0.7).slice(0, 20)), measured, 'a few may all be about what is asked')
    const copies = rowsOf(0.7).map(row => ({ ...row, text: 'the same' }))
    t.same(scaleOf(copies), measured, 'copies count once')
  },
)

t.test('words are scored once for each text, however many copies it has', async t => {
  const copies = Array.from({ length: 300 }, () => ({ text: 'Ada plays the cello' }))
  const index = indexOf([...copies, { text: 'Bo plays chess' }, ...copies.slice(0, 9)])
  const [range] = buildSearchRanges([index], {})
  const concept = { terms: [{ term: 'cello', weight: 2 }], maxScore: 2 }
  const concepts = { matched: [concept], maxTotal: 2, speakerMarkers: [], asked: [] }
  const { totals, matching, positions } = runAtOnce(scoreWords(range!, concepts))
  t.equal(totals.length, 2)
  t.same(Array.from(matching, positions.rowOf), [309], 'the newest of its copies')
  t.equal(positions.of(0), positions.of(309))
  index.remove([index.byTier[1].memory(0).id])
  const [changed] = buildSearchRanges([index], {})
  const again = runAtOnce(scoreWords(changed!, concepts))
  t.same(Array.from(again.matching, again.positions.rowOf), [308], 'another row has the words')
})

t.test('rows are judged by a condition in steps of few rows', async t => {
  const roles = ['user', 'assistant'] as const
  const index = indexOf(
    Array.from({ length: 320 }, (_, n) => ({ text: `text ${n}`, role: roles[n % 2]! })),
  )
  const ranges = buildSearchRanges([index], {
    condition: conditionOf({ filter: { role: 'user' } }),
  })
  t.equal([...judgeRows(ranges)].length, 6)
  const allowed = Array.from({ length: 320 }, (_, row) => ranges[0]!.allows(row))
  t.same(allowed.slice(0, 4), [true, false, true, false])
  t.equal(allowed.filter(Boolean).length, 160)
  t.same([...judgeRows(buildSearchRanges([index], {}))], [], 'nothing without a condition')
})
