import t from 'tap'
import { compareRounds, formatRatio } from '#scripts/lab/bench/ab/figures.ts'

t.test('a spread that covers 1 is called equal, without the best and the worst round', async t => {
  t.equal(formatRatio([0.5, 0.9, 1.1, 1, 3]), '1.00 (0.90 to 1.10) equal')
  t.equal(formatRatio([1.4, 0.5, 0.6, 0.4, 0.55]), '0.55 (0.50 to 0.60)')
  t.equal(formatRatio([0.5, 0.6, 1.4]), '0.60 (0.50 to 1.40) equal', 'three rounds count whole')
  t.equal(formatRatio([Number.NaN, 1, Infinity]), 'too little to measure')
})

t.test('rounds are compared in pairs', async t => {
  const round = (other: number, own: number) =>
    [new Map([['calls', other]]), new Map([['calls', own]])] as const
  const [line, ...more] = compareRounds([round(10, 5), round(100, 50), round(1_000, 500)])
  t.match(line, /calls +100 \(10\.0\) +50\.0 \(5\.00\) +0\.50 \(0\.50 to 0\.50\)$/)
  t.strictSame(more, [])
})
