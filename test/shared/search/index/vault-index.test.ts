import { nearestRows } from '#scripts/lab/bench/nearest-rows.ts'
import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  dotProduct,
  createVectorGenerator,
  seededRandom,
} from '#scripts/lab/bench/generated-vectors.ts'
import { tiers, type EmbeddedMemory, type Memory, type Tier } from '#shared/domain/memory.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { codecOf } from '#shared/search/vectors/int8-codec.ts'
import { createFloat32Codec } from '#test/support/checks/float32-codec.ts'

const dimension = 20
const termsOf = (text: string): string[] => text.toLowerCase().match(/\p{L}+/gu) ?? []

const exactCodec = createFloat32Codec(dimension)

const newIndex = (codec = exactCodec): VaultIndex => createVaultIndex({ dimension, codec, termsOf })

/** The same id for the same number. */
function idOf(number: number): string {
  const hex = createHash('sha256').update(String(number)).digest('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join('-')
}

function built(overrides: Partial<EmbeddedMemory> = {}): EmbeddedMemory {
  return {
    id: randomUUID(),
    tier: 1,
    role: 'user',
    text: 'my cat is called Ada',
    at: 1_000,
    tokens: 5,
    vector: createVectorGenerator('dense', dimension, 1)(),
    ...overrides,
  }
}

const words = ['cat', 'Ada', 'straße', 'Käse', '猫', 'dog', 'of', 'the', 'ﬁn', '😀 smile', '']

/** The same vector for the same text, as an embedding model makes them. */
const vectorOf = (text: string): Float32Array =>
  createVectorGenerator('dense', dimension, hashText(text) % 1e9)()

/** Any memory of a small world, so that ids, times and texts meet again and again. */
function memoryOf(ids: number, random: () => number): EmbeddedMemory {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const importance = Math.floor(random() * 11)
  const speaker = pick(['Ada', 'Grace', '', undefined])
  const text = Array.from({ length: Math.floor(random() * 9) }, () => pick(words)).join(' ')
  return {
    id: idOf(Math.floor(random() * ids)),
    tier: pick(tiers),
    role: pick(['user', 'assistant', 'system'] as const),
    text,
    at: Math.floor(random() * 40) * 1_000,
    tokens: Math.floor(random() * 100_000),
    ...(importance > 0 && { importance }),
    ...(speaker !== undefined && { speaker }),
    vector: vectorOf(text),
  }
}

/** The expected content of an index. */
type Model = Map<string, EmbeddedMemory>

function rowsOf(model: Model, tier: Tier): EmbeddedMemory[] {
  return [...model.values()]
    .filter(memory => memory.tier === tier)
    .sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
}

/** The first difference between an index and its model, or undefined. */
function difference(index: VaultIndex, model: Model, random: () => number): string | undefined {
  for (const tier of tiers) {
    const tierIndex = index.byTier[tier]
    const rows = rowsOf(model, tier)
    if (tierIndex.count !== rows.length)
      return `tier ${tier}: ${tierIndex.count} rows, not ${rows.length}`

    for (const [row, { vector: _, ...memory }] of rows.entries()) {
      const held: Memory = tierIndex.memory(row)
      if (JSON.stringify(sorted(held)) !== JSON.stringify(sorted(memory))) return `row ${row}`
      if (tierIndex.timeAt(row) !== memory.at || tierIndex.role(row) !== memory.role)
        return `fields of ${row}`
      if (tierIndex.tokens(row) !== memory.tokens) return `tokens of ${row}`
      if (tierIndex.importance(row) !== memory.importance) return `importance of ${row}`
      if (tierIndex.speaker(row) !== memory.speaker) return `speaker of ${row}`
    }
    const [from, to] = [random(), random()].map(share => Math.floor(share * 42_000))
    const { first, end } = tierIndex.range(from!, to!)
    const inside = rows.filter(({ at }) => at >= from! && at < to!)
    if (end - first !== inside.length) return `range ${from} to ${to}: ${first} to ${end}`
    if (inside.length > 0 && rows[first] !== inside[0]) return `range begins at ${first}`

    const found = differenceInFinding(index, tier, rows, random)
    if (found) return found
  }
  return undefined
}

function differenceInFinding(
  index: VaultIndex,
  tier: Tier,
  rows: readonly EmbeddedMemory[],
  random: () => number,
): string | undefined {
  const tierIndex = index.byTier[tier]
  const query = createVectorGenerator('dense', dimension, Math.floor(random() * 1e6))()
  const cosines = rows.map(({ vector }) => dotProduct(vector, query))
  const all = tierIndex.cosines(query, [...rows.keys()])
  const wrong = cosines.findIndex((cosine, row) => Math.abs(cosine - all[row]!) > 1e-5)
  if (wrong >= 0) return `cosine of ${wrong}: ${all[wrong]} not ${cosines[wrong]}`
  // Rows of one text are found as one of them.
  const rowOfText = new Map(rows.map(({ text }, row) => [hashText(text), row]))
  const newest = rows.findIndex(({ text }, row) => {
    const found = rows[tierIndex.newestRow(row)]
    return (
      found?.at !== rows[rowOfText.get(hashText(text))!]!.at || found.text.trim() !== text.trim()
    )
  })
  if (newest >= 0) return `newest of ${newest}: ${tierIndex.newestRow(newest)}`
  const best = [...rowOfText.values()].sort((a, b) => cosines[b]! - cosines[a]!).slice(0, 7)
  const nearest = nearestRows(tierIndex, query, 7)
  if ([...nearest.rows].some((row, i) => Math.abs(cosines[row]! - cosines[best[i]!]!) > 1e-5)) {
    return `nearest ${[...nearest.rows].join()} not ${best.join()}`
  }
  if (nearest.rows.length !== best.length) return `nearest: ${nearest.rows.length}`

  const lists = rows.map(({ text }) => termsOf(text))
  const mean = lists.reduce((sum, list) => sum + list.length, 0) / (lists.length || 1)
  if (tierIndex.wordIndex.count !== rows.length) return `words of ${tierIndex.wordIndex.count} rows`
  if (Math.abs(tierIndex.wordIndex.meanLength - mean) > 1e-9)
    return `mean length ${tierIndex.wordIndex.meanLength}`
  for (const term of words.flatMap(termsOf)) {
    const rowsWithTerm = lists.filter(list => list.includes(term)).length
    if (tierIndex.wordIndex.documentFrequency(term) !== rowsWithTerm)
      return `${term} in ${rowsWithTerm}`
    const scores = new Float32Array(rows.length)
    tierIndex.wordIndex.scoreRows([{ term, weight: 1 }], 0, rows.length, scores)
    const wrong = rows.findIndex(({ text }, row) => {
      const list = termsOf(text)
      const often = list.filter(own => own === term).length
      const score = (often * 2.2) / (often + 1.2 * (0.25 + (0.75 * list.length) / mean))
      return Math.abs(scores[tierIndex.homeRow(row)]! - score) > 1e-4
    })
    if (lists.length > 0 && mean > 0 && wrong >= 0) return `score of ${term} in row ${wrong}`
  }
  return undefined
}

function sorted(memory: Memory): unknown[] {
  return Object.entries(memory).sort(([a], [b]) => (a < b ? -1 : 1))
}

t.test('whatever is put, replaced and removed, an index equals a plain list', async t => {
  const step = fc.record({
    kind: fc.constantFrom('put', 'put', 'append', 'remove', 'trim', 'save', 'restore'),
    many: fc.integer({ min: 0, max: 300 }),
  })
  fc.assert(
    fc.property(
      fc.integer(),
      fc.integer({ min: 1, max: 900 }),
      fc.array(step, { maxLength: 8 }),
      (seed, ids, steps) => {
        const random = seededRandom(seed)
        let index = newIndex()
        const model: Model = new Map()
        for (const { kind, many } of steps) {
          if (kind === 'trim') index.trim()
          else if (kind === 'save') index.save()
          else if (kind === 'restore') {
            const saved = index.save()
            index = newIndex()
            index.restore(saved)
          } else if (kind === 'remove') {
            const removed = Array.from({ length: many }, () => idOf(Math.floor(random() * ids)))
            index.remove(removed)
            for (const id of removed) model.delete(id)
          } else {
            const rows = Array.from({ length: many }, () => memoryOf(ids, random))
            if (kind === 'append') for (const [i, row] of rows.entries()) row.at = 50_000 + i
            index.put(rows)
            for (const row of rows) model.set(row.id, row)
          }
          const wrong = difference(index, model, random)
          if (wrong) throw new Error(`after ${kind} of ${many}: ${wrong}`)
        }
        return [...model.keys()].every(id => index.has(id)) && !index.has(idOf(-1))
      },
    ),
    { numRuns: 60 },
  )
  t.pass()
})

t.test('whatever is removed, the rest stays as it was, and more can follow', async t => {
  const random = seededRandom(21)
  const index = newIndex()
  const model: Model = new Map()
  for (let round = 0; round < 3; round++) {
    const rows = Array.from({ length: 2_400 }, () => memoryOf(1_000_000, random))
    index.put(rows)
    for (const row of rows) model.set(row.id, row)
    const removed = [...model.keys()].filter(() => random() < 0.45)
    const bytes = index.bytes
    index.remove(removed)
    t.ok(index.bytes < bytes * 0.8, `${bytes} bytes, then ${index.bytes}`)
    for (const id of removed) model.delete(id)
    t.equal(difference(index, model, random), undefined, `round ${round}`)
  }
})

t.test('what is saved of an index has nothing of a removed memory', async t => {
  const index = newIndex()
  const secrets = ['the secret is zanzibar', 'the zanzibar secret is old']
  const [removed, edited] = secrets.map((text, at) => built({ at, text, speaker: `Zoe ${at}` }))
  index.put([removed!, edited!, built({ at: 5 })])
  const isSaved = (what: string): boolean => index.save().includes(what)
  t.ok(isSaved('zanzibar') && isSaved('Zoe'))
  index.remove([removed!.id])
  index.put([{ ...edited!, text: 'the dog is called Grace', speaker: 'Ada' }])
  t.notOk(isSaved('zanzibar') || isSaved('Zoe'))
  const restored = newIndex()
  restored.restore(index.save())
  t.equal(restored.byTier[1].count, 2)
  t.equal(restored.byTier[1].wordIndex.documentFrequency('zanzibar'), 0)
})

t.test('rows of the same time are in order of their ids', async t => {
  const index = newIndex()
  const ids = Array.from({ length: 20 }, (_, i) => idOf(i))
  for (const id of ids) index.put([built({ id })])
  const held = ids.map((_, row) => index.byTier[1].memory(row).id)
  t.same(held, ids.toSorted())
})

t.test('an edit keeps its row and has its new text, words and vector', async t => {
  const index = newIndex()
  const rows = [1, 2, 3].map(at => built({ at }))
  index.put(rows)
  const vector = createVectorGenerator('dense', dimension, 77)()
  index.put([{ ...rows[1]!, text: 'the dog is called Grace', vector }])

  const tierIndex = index.byTier[1]
  t.equal(tierIndex.count, 3)
  t.equal(tierIndex.memory(1).text, 'the dog is called Grace')
  t.equal(nearestRows(tierIndex, vector, 1).rows[0], 1)
  const frequencies = ['cat', 'dog', 'called'].map(term =>
    tierIndex.wordIndex.documentFrequency(term),
  )
  t.same(frequencies, [2, 1, 3])
})

t.test('a memory put again at another time or tier is there once', async t => {
  const index = newIndex()
  const memory = built({ at: 5 })
  index.put([memory, built({ at: 1 }), built({ at: 9 })])
  index.put([{ ...memory, at: 10 }])
  t.equal(index.byTier[1].count, 3)
  t.equal(index.byTier[1].memory(2).id, memory.id)
  index.put([{ ...memory, tier: 2 }])
  t.equal(index.byTier[1].count, 2)
  t.equal(index.byTier[2].memory(0).id, memory.id)
})

t.test('the same id twice in one put: the last one counts', async t => {
  const index = newIndex()
  const memory = built({ text: 'first' })
  index.put([memory, { ...memory, text: 'second' }, { ...memory, tier: 3, text: 'third' }])
  t.equal(index.byTier[1].count, 0)
  t.equal(index.byTier[3].memory(0).text, 'third')
})

t.test('equal texts hash equally, white space around and composition aside', async t => {
  const index = newIndex()
  const texts = ['Käse', ' Ka\u0308se\n', 'Kase', 'käse', '']
  index.put(texts.map((text, at) => built({ text, at })))
  const [one, same, ...others] = texts.map((_, row) => index.byTier[1].textHash(row))
  t.equal(one, same)
  t.equal(new Set([one, ...others]).size, 4)
  t.ok(others.every(Number.isSafeInteger))
})

t.test('ten thousand different texts have as many hashes', async t => {
  const index = createVaultIndex({ dimension: 1, termsOf: () => [] })
  const vector = Float32Array.of(1)
  const count = 10_000
  index.put(
    Array.from({ length: count }, (_, at) =>
      built({ id: idOf(at), at, text: `note ${at}`, vector }),
    ),
  )
  const hashes = new Set(Array.from({ length: count }, (_, row) => index.byTier[1].textHash(row)))
  t.equal(hashes.size, count)
})

t.test('refused, nothing changed: a vector of another space, an id that is no UUID', async t => {
  const index = newIndex()
  const good = built()
  t.throws(() => index.put([good, built({ vector: new Float32Array(3) })]), TypeError)
  t.throws(() => index.put([good, built({ id: 'memory-1' })]), TypeError)
  t.equal(index.byTier[1].count, 0)
  t.notOk(index.has(good.id))
})

t.test('unknown ids are removed without complaint', async t => {
  const index = newIndex()
  index.put([built()])
  index.remove([randomUUID(), 'nonsense'])
  t.equal(index.byTier[1].count, 1)
})

t.test('vectors that are views into a larger buffer are read where they are', async t => {
  for (const codec of [exactCodec, codecOf(dimension)]) {
    const index = newIndex(codec)
    const two = new Float32Array(dimension * 2)
    two.set(createVectorGenerator('dense', dimension, 5)(), dimension)
    const vector = two.subarray(dimension)
    index.put([built({ vector, at: 2 }), built({ text: 'a dog', at: 1 })])
    const { rows, cosines } = nearestRows(index.byTier[1], vector, 1)
    t.equal(rows[0], 1)
    t.ok(Math.abs(cosines[0]! - 1) < 0.001)
  }
})
