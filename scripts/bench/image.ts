import { randomUUID } from 'node:crypto'
import { exactSearch, MetricKind } from 'usearch'
import { madeVectors, randomOf, vectorKinds, type VectorKind } from '#scripts/bench/made-vectors.ts'
import { median, report, timeEach } from '#scripts/bench/measure.ts'
import { sentence } from '#scripts/bench/vault.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createImage, type Image } from '#shared/search/index/vault-index.ts'
import { codecOf, type Precision } from '#shared/search/vectors/precision.ts'
import { createVectors } from '#shared/search/vectors/vectors.ts'
import { termsOf } from '#shared/search/words/words.ts'

/** The image alone, without HTTP and databases: a vault of this size, texts of 200 bytes. */
const count = 10_000
const textBytes = 200
const batch = 1_000
const questions = 100
/** Rows that a search for ten asks for by meaning. */
const reach = 48

await measureSpeed(1_536)
for (const kind of vectorKinds) measureError(kind, 1_536)
// Both stay while images are measured: nothing may be collected in between.
const vaults = [1_024, 1_536].map(dimension => vaultOf(dimension).rows)
for (const rows of vaults) {
  for (const precision of ['int8', 'float32'] as const) await measureBytes(rows, precision)
}

async function measureSpeed(dimension: number): Promise<void> {
  const { rows, matrix, next } = vaultOf(dimension)
  const image = createImage({ dimension, termsOf })
  const begun = performance.now()
  fill(image, rows)
  report(
    'int8 image: rows put in batches of 1,000',
    (count * 1_000) / (performance.now() - begun),
    {
      unit: 'rows/s',
    },
  )

  const block = image.blocks[1]
  const asked = Array.from({ length: questions }, next)
  let turn = 0
  const question = () => asked[turn++ % questions]!
  const time = async (work: () => unknown) => median(await timeEach(200, async () => work()))
  const floor = await time(() => exactSearch(matrix, question(), dimension, 10, MetricKind.IP, 1))
  report('bare float32 scan of 10,000 x 1,536, best 10', floor, { unit: 'ms' })
  for (const k of [10, 200]) {
    const ours = await time(() => block.nearest(question(), k))
    report(`int8 image, best ${k}: share of the float32 scan`, ours / floor, { bar: { most: 0.5 } })
  }
  const window = await time(() => block.nearest(question(), 200, count - batch / 2))
  report('the same, best 200 of the newest 500', window / floor)
  const some = Array.from({ length: 100 }, (_, i) => i * 97)
  report('cosines of 100 rows', (await time(() => block.cosines(question(), some))) / floor)

  const terms = termsOf(rows[0]!.text).slice(0, 6)
  const weighted = terms.map(term => ({ term, weight: 1 }))
  const sums = new Float32Array(count)
  const words = await time(() => block.words.scores(weighted, 0, count, sums.fill(0)))
  const holders = terms.reduce((sum, term) => sum + block.words.frequency(term), 0)
  report(`words: BM25 of 6 terms in ${holders} rows together`, words, { unit: 'ms' })

  let at = count
  const two = () => [0, 1].map(i => ({ ...rows[i]!, id: randomUUID(), at: at++ }))
  report('put of the 2 newest rows', await time(() => image.put(two())), { unit: 'ms' })
  const early = () => two().map(row => ({ ...row, at: count / 2 }))
  report('put of 2 rows amid the others', await time(() => image.put(early())), { unit: 'ms' })
  const gone = rows.slice(0, 500).map(({ id }) => id)
  const before = performance.now()
  image.remove(gone)
  report('removal of 500 rows', performance.now() - before, { unit: 'ms' })
}

function measureError(kind: VectorKind, dimension: number): void {
  const next = madeVectors(kind, dimension, 5)
  const rows = Array.from({ length: count }, next)
  const matrix = new Float32Array(count * dimension)
  rows.forEach((row, i) => matrix.set(row, i * dimension))
  const vectors = createVectors(codecOf(dimension, 'int8'))
  vectors.insert(
    rows.map(() => 0),
    rows,
  )
  let worst = 0
  let sum = 0
  let agreed = 0
  for (let asked = 0; asked < questions; asked++) {
    const question = next()
    const { keys, distances } = exactSearch(matrix, question, dimension, 200, MetricKind.IP, 1)
    const exact = new Map(Array.from(keys, (key, i) => [Number(key), 1 - distances[i]!]))
    const found = vectors.nearest(question, 200, 0, count)
    const shared = [...found.rows.keys()].filter(i => exact.has(found.rows[i]!))
    const errors = shared.map(i => Math.abs(found.cosines[i]! - exact.get(found.rows[i]!)!))
    worst = Math.max(worst, ...errors)
    sum += errors.reduce((total, error) => total + error, 0) / errors.length
    const ten = new Set([...exact.keys()].slice(0, 10))
    const asSearched = vectors.nearest(question, reach, 0, count).rows.subarray(0, 10)
    agreed += [...asSearched].filter(row => ten.has(row)).length / 10
  }
  report(`${kind} vectors: largest error of a cosine`, worst, { bar: { most: 0.005 } })
  report(`${kind} vectors: mean error of the best 200`, sum / questions)
  report(`${kind} vectors: top 10 as float32 has it`, agreed / questions, { bar: { least: 0.98 } })
}

async function measureBytes(rows: readonly EmbeddedMemory[], precision: Precision): Promise<void> {
  const dimension = rows[0]!.vector.length
  // What belongs to the process and not to an image: scratch memory, compiled code.
  fill(createImage({ dimension, precision, termsOf }), rows)
  const before = await usedBytes()
  const image = createImage({ dimension, precision, termsOf })
  fill(image, rows)
  const used = (await usedBytes()) - before
  const vectorBytes = count * dimension * (precision === 'int8' ? 1 : 4)
  const raw = vectorBytes + rows.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  const name = `${precision} image of ${dimension} dimensions`
  report(`${name}: bytes per raw byte`, used / raw, { bar: { most: 1.6 } })
  report(`${name}: bytes it says per byte used`, image.bytes / used, { bar: { least: 0.9 } })
}

function vaultOf(dimension: number) {
  const next = madeVectors('clustered', dimension, 1)
  const random = randomOf(2)
  const matrix = new Float32Array(count * dimension)
  const rows = Array.from({ length: count }, (_, at): EmbeddedMemory => {
    const vector = matrix.subarray(at * dimension, (at + 1) * dimension)
    vector.set(next())
    // As a request brings it: one piece, not a chain of words that measuring would flatten.
    const text = Buffer.from(sentence(60, random)).toString('utf8', 0, textBytes)
    return { id: randomUUID(), tier: 1, role: 'user', text, at, tokens: 50, vector }
  })
  return { rows, matrix, next }
}

function fill(image: Image, rows: readonly EmbeddedMemory[]): void {
  for (let row = 0; row < rows.length; row += batch) image.put(rows.slice(row, row + batch))
  image.trim()
}

/** Buffers are given back some time after they are collected: measured until nothing moves. */
async function usedBytes(): Promise<number> {
  let used = 0
  for (let same = 0, rounds = 0; same < 3 && rounds < 100; rounds++) {
    gc?.()
    await new Promise(resolve => setTimeout(resolve, 5))
    // External: array buffers, and the memory of WebAssembly, which they leave out.
    const { heapUsed, external } = process.memoryUsage()
    same = Math.abs(heapUsed + external - used) < 20_000 ? same + 1 : 0
    used = heapUsed + external
  }
  return used
}
