import fc from 'fast-check'
import t from 'tap'
import { dotProduct, createVectorGenerator } from '#scripts/lab/bench/generated-vectors.ts'
import { rotationOf } from '#shared/search/vectors/int8-codec.ts'

function rotated(vector: Float32Array): Float32Array {
  const into = new Float64Array(vector.length)
  rotationOf(vector.length)(vector, into)
  return Float32Array.from(into)
}

t.test('lengths and angles are preserved in any dimension', async t => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.integer(), (dimension, seed) => {
      const next = createVectorGenerator('dense', dimension, seed)
      const [one, other] = [next(), next()]
      const before = dotProduct(one, other)
      return (
        Math.abs(dotProduct(rotated(one), rotated(other)) - before) < 1e-5 &&
        Math.abs(dotProduct(rotated(one), rotated(one)) - 1) < 1e-5
      )
    }),
  )
  t.pass()
})

t.test('a single spike is spread over all coordinates', async t => {
  for (const dimension of [384, 768, 1_024, 1_536]) {
    for (const spike of [0, dimension >> 1, dimension - 1]) {
      const vector = new Float32Array(dimension)
      vector[spike] = 1
      const peak = Math.max(...rotated(vector).map(Math.abs))
      t.ok(peak < 4 / Math.sqrt(dimension), `${dimension}: ${peak}`)
    }
  }
})

t.test('reproducible', async t => {
  const vector = createVectorGenerator('dense', 96, 1)()
  t.same(rotated(vector), rotated(vector))
})
