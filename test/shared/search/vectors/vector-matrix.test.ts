import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import { runAtOnce } from '#shared/core/event-loop.ts'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  dotProduct,
  createVectorGenerator,
  seededRandom,
} from '#scripts/lab/bench/generated-vectors.ts'
import { codecOf } from '#shared/search/vectors/int8-codec.ts'
import { VectorMatrix } from '#shared/search/vectors/vector-matrix.ts'
import { createFloat32Codec } from '#test/support/checks/float32-codec.ts'

const dimension = 12

/** Rows enough for several chunks of 4,096, beside the plain list they must equal. */
function matrixOf(count: number, seed: number) {
  const next = createVectorGenerator('dense', dimension, seed)
  const model = Array.from({ length: count }, next)
  const vectors = new VectorMatrix(createFloat32Codec(dimension))
  vectors.insert(
    model.map(() => 0),
    model,
  )
  return { vectors, model, next }
}

function sameRows(t: Test, vectors: VectorMatrix, model: readonly Float32Array[], note: string) {
  const probe = createVectorGenerator('dense', dimension, 99)()
  const cosines = vectors.cosines(
    probe,
    model.map((_, row) => row),
  )
  const wrong = model.findIndex((row, i) => Math.abs(dotProduct(row, probe) - cosines[i]!) > 1e-5)
  t.equal(vectors.count, model.length, note)
  t.equal(wrong, -1, note)
}

function bestOf(model: readonly Float32Array[], query: Float32Array, first: number, end: number) {
  return model
    .map((row, i) => ({ row: i, cosine: dotProduct(row, query) }))
    .slice(first, end)
    .sort((a, b) => b.cosine - a.cosine)
}

t.test('any range of rows is searched exactly, over chunk borders too', async t => {
  const { vectors, model, next } = matrixOf(9_500, 1)
  const random = seededRandom(5)
  const ranges = [
    [0, 9_500],
    [0, 1],
    [4_095, 4_097],
    [4_000, 8_300],
    [8_191, 9_500],
    [100, 4_096],
    [3_900, 4_090],
    [9_499, 9_500],
    ...Array.from({ length: 30 }, () => {
      const ends = [random(), random()].map(share => Math.floor(share * 9_500))
      return [Math.min(...ends), Math.max(...ends) + 1]
    }),
  ]
  for (const [first = 0, end = 0] of ranges) {
    const query = next()
    const best = bestOf(model, query, first, end)
    for (const k of [1, 10, 200]) {
      const found = nearestRows(vectors, query, k, first, end)
      const expected = best.slice(0, k).map(({ row }) => row)
      t.same([...found.rows], expected, `${k} of ${first} to ${end}`)
    }
  }
})

t.test('the best rows may all lie together', async t => {
  const { vectors, model, next } = matrixOf(9_000, 2)
  const query = next()
  for (let row = 5_000; row < 5_400; row++) {
    model[row] = query.map((number, i) => (i === row % dimension ? number + 1e-3 * row : number))
    vectors.replace(row, model[row]!)
  }
  const best = bestOf(model, query, 0, 9_000).slice(0, 300)
  const found = nearestRows(vectors, query, 300, 0, 9_000)
  t.same([...found.rows].sort(), best.map(({ row }) => row).sort())
})

t.test('of equals the later row comes first', async t => {
  const vectors = new VectorMatrix(codecOf(dimension))
  const vector = createVectorGenerator('dense', dimension, 4)()
  vectors.insert([0, 0, 0, 0], [vector, vector, vector, vector])
  t.same([...nearestRows(vectors, vector, 4, 0, 4).rows], [3, 2, 1, 0])
})

t.test('nothing to find: no rows, no range, k of 0', async t => {
  const empty = new VectorMatrix(codecOf(dimension))
  const vector = createVectorGenerator('dense', dimension, 4)()
  t.equal(nearestRows(empty, vector, 5, 0, 0).rows.length, 0)
  const { vectors } = matrixOf(3, 1)
  t.equal(nearestRows(vectors, vector, 5, 2, 2).rows.length, 0)
  t.equal(nearestRows(vectors, vector, 0, 0, 3).rows.length, 0)
  t.equal(vectors.cosines(vector, []).length, 0)
})

t.test('newest rows one by one', async t => {
  const { vectors, model, next } = matrixOf(4_090, 3)
  for (let added = 0; added < 20; added++) {
    const vector = next()
    vectors.insert([model.length], [vector])
    model.push(vector)
  }
  sameRows(t, vectors, model, 'appended')
})

t.test('history before everything, larger than a chunk', async t => {
  const { vectors, model, next } = matrixOf(5_000, 3)
  const history = Array.from({ length: 9_000 }, next)
  vectors.insert(
    history.map(() => 0),
    history,
  )
  sameRows(t, vectors, [...history, ...model], 'history')
})

t.test('inserted and removed anywhere, rows stay what they are', async t => {
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.boolean(), { maxLength: 6 }), (seed, steps) => {
      const { vectors, model, next } = matrixOf(4_600, seed)
      const random = seededRandom(seed)
      for (const inserting of steps) {
        const many = Math.ceil(random() * 2_500)
        const picked = new Set(
          Array.from({ length: many }, () => Math.floor(random() * model.length)),
        )
        const positions = [...picked].sort((a, b) => a - b)
        if (inserting) {
          const added = positions.map(next)
          vectors.insert(positions, added)
          positions.forEach((position, i) => model.splice(position + i, 0, added[i]!))
        } else {
          vectors.remove(positions)
          positions.forEach((position, i) => model.splice(position - i, 1))
        }
        if (random() < 0.3) vectors.trim()
      }
      sameRows(t, vectors, model, `seed ${seed}`)
    }),
    { numRuns: 12 },
  )
})

t.test('memory follows the rows: little is spare, and removals give it back', async t => {
  const { vectors } = matrixOf(9_000, 3)
  const bytes = vectors.bytes
  t.ok(bytes < 9_000 * dimension * 4 * 1.2)
  vectors.remove(Array.from({ length: 8_500 }, (_, row) => row))
  t.ok(vectors.bytes < bytes / 8)
  vectors.trim()
  t.equal(vectors.bytes, 500 * dimension * 4)
})

t.test('several vectors in one pass: each finds what it finds alone', async t => {
  for (const [name, codec, count] of [
    ['float32', createFloat32Codec(dimension), 9_500],
    ['int8', codecOf(dimension), 9_500],
    // Rows enough for the prefilter.
    ['int8', codecOf(768), 3_000],
  ] as const) {
    const width = codec.dimension
    const next = createVectorGenerator('clustered', width, 6)
    const model = Array.from({ length: count }, next)
    const vectors = new VectorMatrix(codec)
    vectors.insert(
      model.map(() => 0),
      model,
    )
    // More than are compared in one pass.
    const queries = Array.from({ length: 11 }, next)
    for (const [first, end] of [
      [0, count],
      [100, count - 7],
      [5, 5],
    ] as const) {
      const together = runAtOnce(vectors.approximateNearest(queries, 20, first, end))
      t.equal(together.length, queries.length)
      for (const [i, query] of queries.entries()) {
        const [alone] = runAtOnce(vectors.approximateNearest([query], 20, first, end))
        t.same([...together[i]!], [...alone!], `${name} ${width}: query ${i} of ${first}`)
      }
    }
  }
})
