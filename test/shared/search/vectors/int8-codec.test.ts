import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import t from 'tap'
import {
  dotProduct,
  createVectorGenerator,
  vectorKinds,
} from '#scripts/lab/bench/generated-vectors.ts'
import { Int8Codec } from '#shared/search/vectors/int8-codec.ts'
import { VectorMatrix } from '#shared/search/vectors/vector-matrix.ts'

function matrixOf(vectors: readonly Float32Array[]) {
  const matrix = new VectorMatrix(new Int8Codec(vectors[0]!.length))
  matrix.insert(
    vectors.map(() => 0),
    vectors,
  )
  return matrix
}

for (const kind of vectorKinds) {
  t.test(`cosines of ${kind} vectors are right to 0.005, the best ten nearly always`, async t => {
    const next = createVectorGenerator(kind, 768, 7)
    const rows = Array.from({ length: 1_500 }, next)
    const matrix = matrixOf(rows)
    let agreed = 0
    let error = 0
    for (let round = 0; round < 20; round++) {
      const query = next()
      const exact = rows.map(row => dotProduct(row, query))
      const best = [...exact.keys()].sort((a, b) => exact[b]! - exact[a]!).slice(0, 10)
      const found = nearestRows(matrix, query, rows.length, 0, rows.length)
      found.rows.forEach((row, i) => {
        error = Math.max(error, Math.abs(found.cosines[i]! - exact[row]!))
      })
      const ten = nearestRows(matrix, query, 10, 0, rows.length).rows
      agreed += best.filter(row => ten.includes(row)).length / 10
    }
    t.ok(error < 0.005, `largest error ${error}`)
    t.ok(agreed / 20 >= 0.98, `agreement ${agreed / 20}`)
  })
}

t.test('a row meets itself at 1', async t => {
  for (const kind of vectorKinds) {
    const vector = createVectorGenerator(kind, 1_024, 3)()
    const [cosine] = matrixOf([vector]).cosines(vector, [0])
    t.ok(Math.abs(cosine! - 1) < 0.0005, `${kind}: ${cosine}`)
  }
})

t.test('a zero vector is like nothing', async t => {
  const vector = createVectorGenerator('dense', 64, 3)()
  const zero = new Float32Array(64)
  t.same([...matrixOf([zero, vector]).cosines(vector, [0])], [0])
  t.same([...matrixOf([vector]).cosines(zero, [0])], [0])
})

t.test('dimensions that no power of two and no byte divides', async t => {
  for (const dimension of [2, 3, 7, 9, 100, 301]) {
    const next = createVectorGenerator('dense', dimension, dimension)
    const rows = Array.from({ length: 200 }, next)
    const query = next()
    const cosines = matrixOf(rows).cosines(
      query,
      rows.map((_, row) => row),
    )
    const errors = rows.map((row, i) => Math.abs(cosines[i]! - dotProduct(row, query)))
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length
    // A quarter of a step of a 127th, spread evenly; without the ninth bit it would be twice that.
    t.ok(mean < 0.0011, `${dimension}: ${mean}`)
  }
})

t.test('a query vector changed in place is encoded again', async t => {
  const rows = [Float32Array.of(1, 0), Float32Array.of(0, 1)]
  const matrix = matrixOf(rows)
  const query = Float32Array.of(1, 0)
  t.same([...nearestRows(matrix, query, 1, 0, 2).rows], [0])
  query.set([0, 1])
  t.same([...nearestRows(matrix, query, 1, 0, 2).rows], [1])
})
