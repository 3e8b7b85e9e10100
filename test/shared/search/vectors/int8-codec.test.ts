import t from 'tap'
import { dotProduct, createVectorGenerator, vectorKinds } from '#scripts/bench/generated-vectors.ts'
import { createInt8Codec } from '#shared/search/vectors/int8-codec.ts'
import { createVectorMatrix } from '#shared/search/vectors/vector-matrix.ts'

function held(vectors: readonly Float32Array[]) {
  const matrix = createVectorMatrix(createInt8Codec(vectors[0]!.length))
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
    const matrix = held(rows)
    let agreed = 0
    let error = 0
    for (let asked = 0; asked < 20; asked++) {
      const question = next()
      const exact = rows.map(row => dotProduct(row, question))
      const best = [...exact.keys()].sort((a, b) => exact[b]! - exact[a]!).slice(0, 10)
      const found = matrix.nearest(question, rows.length, 0, rows.length)
      found.rows.forEach((row, i) => {
        error = Math.max(error, Math.abs(found.cosines[i]! - exact[row]!))
      })
      const ten = matrix.nearest(question, 10, 0, rows.length).rows
      agreed += best.filter(row => ten.includes(row)).length / 10
    }
    t.ok(error < 0.005, `largest error ${error}`)
    t.ok(agreed / 20 >= 0.98, `agreement ${agreed / 20}`)
  })
}

t.test('a row meets itself at 1', async t => {
  for (const kind of vectorKinds) {
    const vector = createVectorGenerator(kind, 1_024, 3)()
    const [cosine] = held([vector]).cosines(vector, [0])
    t.ok(Math.abs(cosine! - 1) < 0.0005, `${kind}: ${cosine}`)
  }
})

t.test('a zero vector is like nothing', async t => {
  const vector = createVectorGenerator('dense', 64, 3)()
  const zero = new Float32Array(64)
  t.same([...held([zero, vector]).cosines(vector, [0])], [0])
  t.same([...held([vector]).cosines(zero, [0])], [0])
})

t.test('dimensions that no power of two and no byte divides', async t => {
  for (const dimension of [2, 3, 7, 9, 100, 301]) {
    const next = createVectorGenerator('dense', dimension, dimension)
    const rows = Array.from({ length: 200 }, next)
    const question = next()
    const cosines = held(rows).cosines(
      question,
      rows.map((_, row) => row),
    )
    const errors = rows.map((row, i) => Math.abs(cosines[i]! - dotProduct(row, question)))
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length
    // A quarter of a step of a 127th, spread evenly; without the ninth bit it would be twice that.
    t.ok(mean < 0.0011, `${dimension}: ${mean}`)
  }
})

t.test('a question that changed in place is a new question', async t => {
  const rows = [Float32Array.of(1, 0), Float32Array.of(0, 1)]
  const matrix = held(rows)
  const question = Float32Array.of(1, 0)
  t.same([...matrix.nearest(question, 1, 0, 2).rows], [0])
  question.set([0, 1])
  t.same([...matrix.nearest(question, 1, 0, 2).rows], [1])
})
