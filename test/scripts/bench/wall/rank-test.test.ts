import t from 'tap'
import { seededRandom } from '#scripts/bench/bench-environment.ts'
import { comparePairs } from '#scripts/bench/wall/rank-test.ts'

/** Pairs of times around 5 ms with a long tail; the second is later by `by`. */
function pairsOf(count: number, by: number, seed: number): [number, number][] {
  const random = seededRandom(seed)
  const time = (): number => 5 + random() + (random() < 0.05 ? 20 * random() : 0)
  return Array.from({ length: count }, () => [time(), time() + by])
}

t.test(
  'a difference far below the noise is found in enough pairs, and none where there is none',
  async t => {
    for (const seed of [1, 2, 3, 4, 5]) {
      t.ok(Math.abs(comparePairs(pairsOf(400, 0, seed)).z) < 4, `none, ${seed}`)
      const { z, median } = comparePairs(pairsOf(400, 0.2, seed))
      t.ok(z > 4, `0.2 ms, ${seed}: ${z}`)
      t.ok(median > 0.1 && median < 0.3, `${median}`)
      t.ok(comparePairs(pairsOf(400, -0.2, seed)).z < -4, 'earlier')
    }
    t.same(comparePairs([[1, 1]]).z, 0)
  },
)
