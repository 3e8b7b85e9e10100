import { randomUUID } from 'node:crypto'
import { exactSearch, MetricKind } from 'usearch'
import {
  createVectorGenerator,
  seededRandom,
  vectorKinds,
  type VectorKind,
} from '#scripts/lab/bench/generated-vectors.ts'
import { median, report, timeRuns } from '#scripts/lab/bench/measure.ts'
import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { measureUsedBytes } from '#scripts/lab/bench/used-bytes.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { codecOf, type Precision } from '#shared/search/vectors/precision.ts'
import { VectorMatrix } from '#shared/search/vectors/vector-matrix.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/** The vault index without HTTP and databases: this many memories, texts of 200 bytes. */
const memoryCount = 10_000
const textBytes = 200
/** Memories of the large vault whose bytes are counted. */
const manyCount = 100_000
const batchSize = 1_000
const questionCount = 100
/** Rows that a search with limit 10 requests from the vector matrix. */
const candidateCount = 48

await measureSpeed(1_536)
for (const kind of vectorKinds) measureError(kind, 1_536)
// Both arrays stay referenced: a garbage collection of one would falsify the measured bytes.
const vaults = [1_024, 1_536].map(dimension => generateVault(dimension).rows)
for (const rows of vaults) {
  for (const precision of ['int8', 'float32'] as const) await measureBytes(rows, precision)
}
await measureBytesOfMany(1_536)

async function measureSpeed(dimension: number): Promise<void> {
  const { rows, matrix, next } = generateVault(dimension)
  const index = createVaultIndex({ dimension, termsOf })
  const startedAt = performance.now()
  fillIndex(index, rows)
  report(
    'int8 index: rows put in batches of 1,000',
    (memoryCount * 1_000) / (performance.now() - startedAt),
    {
      unit: 'rows/s',
    },
  )

  const block = index.byTier[1]
  const queries = Array.from({ length: questionCount }, next)
  let turn = 0
  const question = () => queries[turn++ % questionCount]!
  const time = async (work: () => unknown) => median(await timeRuns(200, async () => work()))
  const floor = await time(() => exactSearch(matrix, question(), dimension, 10, MetricKind.IP, 1))
  report('bare float32 scan of 10,000 x 1,536, best 10', floor, { unit: 'ms' })
  for (const k of [10, 200]) {
    const scan = await time(() => block.nearest(question(), k))
    report(`int8 index, best ${k}: share of the float32 scan`, scan / floor, { bar: { most: 0.5 } })
  }
  const window = await time(() => block.nearest(question(), 200, memoryCount - batchSize / 2))
  report('the same, best 200 of the newest 500', window / floor)
  const some = Array.from({ length: 100 }, (_, i) => i * 97)
  report('cosines of 100 rows', (await time(() => block.cosines(question(), some))) / floor)

  const terms = termsOf(rows[0]!.text).slice(0, 6)
  const weighted = terms.map(term => ({ term, weight: 1 }))
  const sums = new Float32Array(memoryCount)
  const wordTime = await time(() =>
    block.wordIndex.scoreRows(weighted, 0, memoryCount, sums.fill(0)),
  )
  const postings = terms.reduce((sum, term) => sum + block.wordIndex.documentFrequency(term), 0)
  report(`words: BM25 of 6 terms in ${postings} postings`, wordTime, { unit: 'ms' })

  let at = memoryCount
  const two = () => [0, 1].map(i => ({ ...rows[i]!, id: randomUUID(), at: at++ }))
  report('put of the 2 newest rows', await time(() => index.put(two())), { unit: 'ms' })
  const early = () => two().map(row => ({ ...row, at: memoryCount / 2 }))
  report('put of 2 rows in the middle', await time(() => index.put(early())), { unit: 'ms' })
  const removedIds = rows.slice(0, 500).map(({ id }) => id)
  const before = performance.now()
  index.remove(removedIds)
  report('removal of 500 rows', performance.now() - before, { unit: 'ms' })
}

function measureError(kind: VectorKind, dimension: number): void {
  const next = createVectorGenerator(kind, dimension, 5)
  const rows = Array.from({ length: memoryCount }, next)
  const matrix = new Float32Array(memoryCount * dimension)
  rows.forEach((row, i) => matrix.set(row, i * dimension))
  const vectors = new VectorMatrix(codecOf(dimension, 'int8'))
  vectors.insert(
    rows.map(() => 0),
    rows,
  )
  let worst = 0
  let sum = 0
  let agreed = 0
  for (let round = 0; round < questionCount; round++) {
    const question = next()
    const { keys, distances } = exactSearch(matrix, question, dimension, 200, MetricKind.IP, 1)
    const exact = new Map(Array.from(keys, (key, i) => [Number(key), 1 - distances[i]!]))
    const nearest = vectors.nearest(question, 200, 0, memoryCount)
    const shared = [...nearest.rows.keys()].filter(i => exact.has(nearest.rows[i]!))
    const errors = shared.map(i => Math.abs(nearest.cosines[i]! - exact.get(nearest.rows[i]!)!))
    worst = Math.max(worst, ...errors)
    sum += errors.reduce((total, error) => total + error, 0) / errors.length
    const ten = new Set([...exact.keys()].slice(0, 10))
    const searched = vectors.nearest(question, candidateCount, 0, memoryCount).rows.subarray(0, 10)
    agreed += [...searched].filter(row => ten.has(row)).length / 10
  }
  report(`${kind} vectors: largest error of a cosine`, worst, { bar: { most: 0.005 } })
  report(`${kind} vectors: mean error of the best 200`, sum / questionCount)
  report(`${kind} vectors: top 10 as float32 has it`, agreed / questionCount, {
    bar: { least: 0.98 },
  })
}

async function measureBytes(rows: readonly EmbeddedMemory[], precision: Precision): Promise<void> {
  const dimension = rows[0]!.vector.length
  // Allocates what belongs to the process and not to an index: scratch memory, compiled code.
  fillIndex(createVaultIndex({ dimension, precision, termsOf }), rows)
  const before = await measureUsedBytes()
  const index = createVaultIndex({ dimension, precision, termsOf })
  fillIndex(index, rows)
  const used = (await measureUsedBytes()) - before
  const vectorBytes = memoryCount * dimension * (precision === 'int8' ? 1 : 4)
  const raw = vectorBytes + rows.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  const name = `${precision} index of ${dimension} dimensions`
  report(`${name}: bytes per raw byte`, used / raw, { bar: { most: 1.6 } })
  report(`${name}: reported bytes per used byte`, index.bytes / used, { bar: { least: 0.9 } })
}

/** Bytes that the process holds for each memory of a large vault: vectors, words, texts and what finds them. */
async function measureBytesOfMany(dimension: number): Promise<void> {
  const next = createVectorGenerator('clustered', dimension, 1)
  const random = seededRandom(2)
  const before = await measureUsedBytes()
  const index = createVaultIndex({ dimension, termsOf })
  for (let at = 0; at < manyCount; at += batchSize)
    index.put(Array.from({ length: batchSize }, (_, n) => makeMemory(at + n, next(), random)))
  index.trim()
  const used = (await measureUsedBytes()) - before
  const name = `int8 index of ${manyCount.toLocaleString('en')} x ${dimension.toLocaleString('en')}`
  report(`${name}: bytes a memory`, used / manyCount, { unit: 'B', bar: { most: 2_100 } })
  report(`${name}: reported bytes per used byte`, index.bytes / used, { bar: { least: 0.9 } })
}

function generateVault(dimension: number) {
  const next = createVectorGenerator('clustered', dimension, 1)
  const random = seededRandom(2)
  const matrix = new Float32Array(memoryCount * dimension)
  const rows = Array.from({ length: memoryCount }, (_, at): EmbeddedMemory => {
    const vector = matrix.subarray(at * dimension, (at + 1) * dimension)
    vector.set(next())
    return makeMemory(at, vector, random)
  })
  return { rows, matrix, next }
}

function makeMemory(at: number, vector: Float32Array, random: () => number): EmbeddedMemory {
  // A flat string, as from a request: a rope of words would be flattened while it is measured.
  const text = Buffer.from(randomSentence(60, random)).toString('utf8', 0, textBytes)
  return { id: randomUUID(), tier: 1, role: 'user', text, at, tokens: 50, vector }
}

function fillIndex(index: VaultIndex, rows: readonly EmbeddedMemory[]): void {
  for (let row = 0; row < rows.length; row += batchSize) index.put(rows.slice(row, row + batchSize))
  index.trim()
}
