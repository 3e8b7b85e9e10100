import t, { type Test } from 'tap'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rankInTurns, rankingSteps, rankQuestions } from '#shared/search/ranking/rank.ts'
import type { EmbeddedQuestion } from '#shared/search/ranking/rank-question.ts'
import type { SearchHit } from '#shared/search/ranking/search-hits.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'

/* A search of a large vault is made of short turns of the event loop, each on the same rows. */

t.setTimeout(0)

const dimension = 256
const rowCount = 16_384
const now = Date.UTC(2026, 10, 20, 15)
const words = Array.from({ length: 300 }, (_, n) => `word${(n * 7_919).toString(36)}`)
const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

/** Another text for each number. */
const textOf = (n: number): string => {
  const chosen = Array.from({ length: 10 }, (_, w) => words[(n * 31 + w * w * 17 + w * n) % 300])
  return `${chosen.join(' ')} ${n}`
}

/** A unit vector near the axis of its first word. */
function vectorOf(n: number): Float32Array {
  const vector = new Float32Array(dimension)
  let state = (n + 1) * 2_654_435_761
  for (let d = 0; d < dimension; d++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + d
    vector[d] = ((state >>> 8) & 0xffff) / 0xffff - 0.5
  }
  const length = Math.hypot(...vector)
  return vector.map(value => value / length)
}

const memoryOf = (n: number, more: Partial<EmbeddedMemory> = {}): EmbeddedMemory => ({
  id: idOf(n),
  tier: 1,
  role: 'user',
  text: textOf(n),
  at: now - (rowCount * 2 - n) * 60_000,
  tokens: 20,
  vector: vectorOf(n),
  ...more,
})

const index = createVaultIndex({ dimension, termsOf, packLater: true })
for (let first = 0; first < rowCount; first += 1_024)
  index.put(Array.from({ length: 1_024 }, (_, i) => memoryOf(first + i)))
index.trim()

const search = {
  now,
  limit: 20,
  floor: false,
  calibration: { unrelated: 0.1, same: 0.6, floor: 0.1 },
}

/** Ten parts that ask. */
const partsOf = (n: number) =>
  Array.from({ length: 10 }, (_, part) => ({
    text: textOf(n + part * 1_000),
    vector: vectorOf(n + part * 1_000),
    kind: 'asking' as const,
  }))
const plain = (hits: readonly SearchHit[]): unknown => JSON.parse(JSON.stringify(hits))
const idsOf = (hits: readonly SearchHit[]): string[] => hits.map(({ memory }) => memory.id)

/** The steps of a search: between two of them others are served. */
function countSteps(
  indexes: readonly VaultIndex[],
  questions: readonly EmbeddedQuestion[],
): number {
  const steps = rankingSteps(indexes, questions, search)
  for (let count = 0; ; count++) if (steps.next().done) return count
}

t.test('a search has the more steps the more there is to search, and for', async t => {
  const half = createVaultIndex({ dimension, termsOf, packLater: true })
  for (let first = 0; first < rowCount / 2; first += 1_024)
    half.put(Array.from({ length: 1_024 }, (_, i) => memoryOf(first + i)))
  half.trim()
  const [ofHalf, ofAll, ofOne] = [
    countSteps([half], partsOf(7)),
    countSteps([index], partsOf(7)),
    countSteps([index], partsOf(7).slice(0, 1)),
  ]
  const perRows = (ofAll - ofHalf) / (rowCount / 2 / 4_096)
  t.ok(perRows >= 1, `${perRows.toFixed(1)} steps for each 4,096 rows more`)
  const perPart = (ofAll - ofOne) / 9
  t.ok(perPart >= 5, `${perPart.toFixed(1)} steps for each part more`)
})

t.test('every step may end a turn', async t => {
  startStepClock(t)
  const { turns, stop } = countTurns()
  await rankInTurns(async () => [index], partsOf(7), search)
  stop()
  const steps = countSteps([index], partsOf(7))
  t.ok(turns() >= steps * 0.9, `${turns()} turns of ${steps} steps`)
})

t.test('finds what a search in one turn finds, also beside others', async t => {
  const numbers = Array.from({ length: 6 }, (_, n) => n * 7)
  const together = await Promise.all(
    numbers.map(n => rankInTurns(async () => [index], partsOf(n), search)),
  )
  for (const [i, n] of numbers.entries())
    t.same(plain(together[i]!), plain(rankQuestions([index], partsOf(n), search)))
})

/** Searches while `change` is called in the turn after the search has begun. */
async function searchDuring(t: Test, change: () => void, questions = partsOf(100)) {
  startStepClock(t)
  let opened = 0
  const found = rankInTurns(
    async () => {
      opened++
      return [index]
    },
    questions,
    search,
  )
  setImmediate(change)
  return { found: await found, opened: () => opened }
}

t.test('a memory that is removed while a search runs is not in its answer', async t => {
  const [best] = idsOf(rankQuestions([index], partsOf(100), search))
  const { found, opened } = await searchDuring(t, () => index.remove([best!]))
  t.equal(opened(), 2, 'the search ran in several turns, and began again')
  t.notOk(idsOf(found).includes(best!))
  t.same(plain(found), plain(rankQuestions([index], partsOf(100), search)))
})

t.test('rows that are added while a search runs do not mix two states', async t => {
  const added = Array.from({ length: 30 }, (_, i) =>
    memoryOf(rowCount + i, {
      vector: vectorOf(100),
      text: `${textOf(100)} ${i}`,
      at: now - 4e9 + i,
    }),
  )
  const { found, opened } = await searchDuring(t, () => index.put(added))
  t.equal(opened(), 2)
  t.ok(idsOf(found).some(id => id >= idOf(rowCount)))
  t.same(plain(found), plain(rankQuestions([index], partsOf(100), search)))
})

t.test('rows of an earlier time than all others move the rest', async t => {
  const early = Array.from({ length: 5 }, (_, i) => memoryOf(rowCount + 100 + i, { at: i + 1 }))
  const { found } = await searchDuring(t, () => index.put(early))
  t.same(plain(found), plain(rankQuestions([index], partsOf(100), search)))
  for (const { memory } of found) t.equal(index.find(memory.id)?.text, memory.text)
})

t.test('a search of a vault that changes in every turn ends', async t => {
  let isOver = false
  let changes = 0
  const change = () => {
    index.put([memoryOf(rowCount + 200 + changes++, { at: now - 1_000 + changes })])
    if (!isOver) setImmediate(change)
  }
  const { found, opened } = await searchDuring(t, change)
  isOver = true
  t.equal(opened(), 2)
  t.same(plain(found), plain(rankQuestions([index], partsOf(100), search)))
})
