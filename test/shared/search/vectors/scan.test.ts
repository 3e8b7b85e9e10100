import t from 'tap'
import { scan, scanForAll } from '#shared/search/vectors/scan.ts'

const rows = Int8Array.from([3, 0, 1, 0, 2, 0, -1, 5])
const query = Int8Array.from([10, 0])

t.test('best rows first, with their dot products', async t => {
  const { rows: found, dots } = scan(rows, 4, query, 3)
  t.same([...found], [0, 2, 1])
  t.same([...dots], [30, 20, 10])
})

t.test('only the first `count` rows', async t => {
  t.same([...scan(rows, 2, query, 2).rows], [0, 1])
})

t.test('more results than rows: the rows there are', async t => {
  t.equal(scan(rows, 4, query, 100).rows.length, 4)
})

t.test('no rows, no results', async t => {
  t.equal(scan(new Int8Array(0), 0, query, 5).rows.length, 0)
  t.equal(scan(rows, 4, query, 0).rows.length, 0)
})

t.test('float32 alike', async t => {
  const { rows: found, dots } = scan(Float32Array.of(0.5, 0, 0.25, 0), 2, Float32Array.of(1, 0), 2)
  t.same([...found], [0, 1])
  t.same([...dots], [0.5, 0.25])
})

t.test('refused: a view into the middle of a buffer, which usearch would misread', async t => {
  t.throws(() => scan(rows.subarray(2), 3, query, 1), RangeError)
  t.throws(() => scan(rows, 4, Int8Array.of(0, 0, 10, 0).subarray(2), 1), RangeError)
})

t.test('several queries in one pass: each as by itself', async t => {
  for (const [values, one, other] of [
    [rows, query, Int8Array.of(0, 7)],
    [Float32Array.from(rows), Float32Array.from(query), Float32Array.of(0, 7)],
  ] as const) {
    const found = scanForAll(values, 4, [one, other, one], 3)
    t.equal(found.length, 3)
    for (const [i, alone] of [one, other, one].entries()) {
      const { rows: expected, dots } = scan(values, 4, alone, 3)
      t.same([...found[i]!.dots], [...dots])
      t.same([...found[i]!.rows], [...expected])
    }
  }
  t.same(scanForAll(rows, 4, [], 3), [])
  t.equal(scanForAll(rows, 0, [query, query], 3).length, 2)
})
