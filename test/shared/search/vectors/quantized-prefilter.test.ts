import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import { runAtOnce } from '#shared/core/event-loop.ts'
import fc from 'fast-check'
import t from 'tap'
import {
  createVectorGenerator,
  seededRandom,
  vectorKinds,
} from '#scripts/lab/bench/generated-vectors.ts'
import { Int8Codec } from '#shared/search/vectors/int8-codec.ts'
import {
  selectAboveThreshold,
  columnCountOf,
  prefilterTableOf,
  createQuantizedPrefilter,
  isPrefilterUseful,
} from '#shared/search/vectors/quantized-prefilter.ts'
import { columnsPerGroup, createPrefilterKernel } from '#shared/search/vectors/prefilter-kernel.ts'
import { VectorMatrix } from '#shared/search/vectors/vector-matrix.ts'

const dimension = 768
const count = 4_000

/** Two matrices of the same rows: with the prefilter, and comparing every row. */
function withAndWithoutPrefilter(rows: readonly Float32Array[]) {
  return [true, false].map(usesPrefilter => {
    const vectors = new VectorMatrix(new Int8Codec(dimension, usesPrefilter))
    vectors.insert(
      rows.map(() => 0),
      rows,
    )
    return vectors
  })
}

for (const kind of vectorKinds) {
  t.test(`${kind} vectors: the best rows are those of comparing every row`, async t => {
    const next = createVectorGenerator(kind, dimension, 11)
    const [prefiltered, plain] = withAndWithoutPrefilter(Array.from({ length: count }, next))
    t.ok(prefiltered!.bytes === plain!.bytes, 'no prefilter before the first query')
    let [recall, error] = [0, 0]
    const queries = Array.from({ length: 15 }, next)
    for (const query of queries) {
      const found = nearestRows(prefiltered!, query, 200, 0, count)
      const all = nearestRows(plain!, query, 200, 0, count)
      const cosineOf = new Map(Array.from(found.rows, (row, i) => [row, found.cosines[i]!]))
      recall += [...all.rows.subarray(0, 10)].filter(row => cosineOf.has(row)).length / 10
      for (const [i, row] of all.rows.entries())
        error = Math.max(error, Math.abs((cosineOf.get(row) ?? all.cosines[i]!) - all.cosines[i]!))
    }
    t.ok(recall / queries.length >= 0.99, `${recall / queries.length} of the best ten`)
    // Whether a row is rescored depends on its position among the best.
    t.ok(error < 0.003, `largest difference of a cosine ${error}`)
    t.ok(prefiltered!.bytes > plain!.bytes, 'a prefilter was built')
    t.ok(prefiltered!.bytes < plain!.bytes * 1.35, `${prefiltered!.bytes / plain!.bytes}`)
  })
}

t.test('part of the rows: found within it, wherever it begins and ends', async t => {
  const next = createVectorGenerator('dense', dimension, 12)
  const [prefiltered, plain] = withAndWithoutPrefilter(Array.from({ length: 4_000 }, next))
  for (const [first = 0, end = 0] of [
    [1, 3_999],
    [17, 3_000],
    [900, 3_900],
    [1_007, 3_990],
  ]) {
    t.ok(isPrefilterUseful(end - first, dimension))
    const query = next()
    const best = runAtOnce(plain!.approximateNearest([query], 5, first, end))[0]!
    const found = runAtOnce(prefiltered!.approximateNearest([query], 50, first, end))[0]!
    t.ok(found.every(row => row >= first && row < end))
    t.ok(best.filter(row => found.includes(row)).length >= 4, `${first} to ${end}`)
  }
})

t.test('whatever is put, replaced and removed, each row is nearest to itself', async t => {
  const made = Array.from({ length: 5_000 }, createVectorGenerator('dense', dimension, 13))
  let turn = 0
  const next = () => made[turn++ % made.length]!
  const change = fc.record({
    kind: fc.constantFrom('append', 'insert', 'replace', 'remove', 'trim'),
    seed: fc.nat(),
  })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), changes => {
      turn = 0
      const model = Array.from({ length: 3_000 }, next)
      const [vectors] = withAndWithoutPrefilter(model)
      for (const { kind, seed } of changes) {
        const random = seededRandom(seed)
        const some = new Set(
          Array.from({ length: Math.ceil(random() * 200) }, () =>
            Math.floor(random() * model.length),
          ),
        )
        const rows = [...some].sort((a, b) => a - b)
        if (kind === 'trim') vectors!.trim()
        if (kind === 'remove') {
          vectors!.remove(rows)
          rows.forEach((row, i) => model.splice(row - i, 1))
        }
        if (kind === 'replace') {
          for (const row of rows) vectors!.replace(row, (model[row] = next()))
        }
        if (kind === 'append' || kind === 'insert') {
          const positions = kind === 'insert' ? rows : rows.map(() => model.length)
          const added = positions.map(next)
          vectors!.insert(positions, added)
          positions.forEach((position, i) => model.splice(position + i, 0, added[i]!))
        }
        const probed = [0, model.length - 1, ...rows.slice(0, 8)].filter(row => row < model.length)
        for (const row of probed) {
          if (
            runAtOnce(vectors!.approximateNearest([model[row]!], 1, 0, model.length))[0]![0] !== row
          )
            return false
        }
      }
      return true
    }),
    { numRuns: 5 },
  )
  t.pass('all of them')
})

t.test('the kernel sums the contributions of the table', async t => {
  for (const columns of [8, 16, 192]) {
    const { memory, sums } = createPrefilterKernel(2)
    const random = seededRandom(columns)
    const bytes = new Uint8Array(memory.buffer)
    const start = columns * 32 + 96
    // Sixteen halves of one kind at 15 each stay within a byte.
    for (let i = 0; i < columns * 32; i++) bytes[i] = random() * 16
    for (let i = start; i < bytes.length; i++) bytes[i] = random() * 256
    sums(start, start + 48 * columns, columns * 32, columns * 32, 15)
    const found = new Uint16Array(memory.buffer, columns * 32, 48)
    for (let row = 0; row < 48; row++) {
      let sum = 0
      for (let column = 0; column < columns; column++) {
        const byte = bytes[start + (Math.floor(row / 16) * columns + column) * 16 + (row % 16)]!
        sum += bytes[column * 32 + (byte & 15)]! + bytes[column * 32 + 16 + (byte >> 4)]!
      }
      if (sum !== found[row]) t.fail(`row ${row} of ${columns} columns: ${found[row]}, not ${sum}`)
    }
  }
  t.pass('in every row')
})

t.test('no query makes the sum of a group of halves exceed a byte', async t => {
  const number = fc.oneof(fc.integer({ min: -127, max: 127 }), fc.constantFrom(-127, 0, 127))
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 200 }), numbers => {
      const { bytes, deviation } = prefilterTableOf(Int8Array.from(numbers))
      const most = Array.from({ length: bytes.length / 16 }, (_, half) =>
        Math.max(...bytes.subarray(half * 16, half * 16 + 16)),
      )
      for (let group = 0; group < most.length; group += 2 * columnsPerGroup) {
        for (const kind of [0, 1]) {
          const halves = most.slice(group, group + 2 * columnsPerGroup)
          const sum = halves.filter((_, i) => i % 2 === kind).reduce((a, b) => a + b, 0)
          if (sum > 255) return false
        }
      }
      return deviation >= 1 && most.length === 2 * columnCountOf(numbers.length)
    }),
  )
  t.pass('none')
})

t.test('the rows selected are the best and those within the error, or null', async t => {
  const sum = fc.oneof(fc.nat(65_535), fc.integer({ min: 30_000, max: 34_000 }))
  fc.assert(
    fc.property(
      fc.array(sum, { minLength: 1, maxLength: 400 }),
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 2_000 }),
      (sums, k, deviation) => {
        const positions = selectAboveThreshold(Uint16Array.from(sums), k, deviation, 1_000)
        if (positions === null) return true
        const rows = Array.from(positions, position => position - 1_000)
        const least = Math.min(...rows.map(row => sums[row]!))
        const last = sums.toSorted((a, b) => b - a)[k - 1] ?? 0
        const inOrder = rows.every((row, i) => i === 0 || row > rows[i - 1]!)
        // Sums are sorted into bins of 16.
        const all = sums.every((other, row) => other < last || rows.includes(row))
        const noneBelow = sums.every((other, row) => other < least || rows.includes(row))
        return inOrder && all && noneBelow && rows.length <= sums.length / 4
      },
    ),
    { numRuns: 500 },
  )
  t.pass('always')
})

t.test('without address space every row is compared', async t => {
  const platform = (globalThis as unknown as { WebAssembly: { Memory: unknown } }).WebAssembly
  t.intercept(platform, 'Memory', {
    value: function Memory() {
      throw new RangeError('could not allocate memory')
    },
  })
  const next = createVectorGenerator('dense', dimension, 14)
  const rows = Array.from({ length: 3_000 }, next)
  const [vectors] = withAndWithoutPrefilter(rows)
  const query = next()
  const dots = rows.map(row => row.reduce((sum, number, i) => sum + number * query[i]!, 0))
  const best = [...dots.keys()].sort((a, b) => dots[b]! - dots[a]!)[0]
  t.equal(nearestRows(vectors!, query, 1, 0, rows.length).rows[0], best)
  t.equal(createQuantizedPrefilter(dimension, 100), null)
})
