import fc from 'fast-check'
import t from 'tap'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import { WordIndex, type WeightedTerm } from '#shared/search/words/word-index.ts'

const termsOf = (text: string) => text.split(' ').filter(term => term !== '')
const dead = 0xffffffff

/** An index whose slots equal its rows until one is removed, with capacity for one more. */
function indexOf(texts: readonly string[]) {
  const rows = Uint32Array.from({ length: texts.length + 1 }, (_, row) => row)
  const words = new WordIndex({ termsOf, rowBySlot: () => rows })
  texts.forEach((text, slot) => words.add(slot, text))
  return { words, rows }
}

/** BM25 by the textbook formula. */
function scoresOf(texts: readonly string[], terms: readonly { term: string; weight: number }[]) {
  const lengths = texts.map(text => termsOf(text).length)
  // Without terms no score depends on the mean.
  const mean = lengths.reduce((sum, length) => sum + length, 0) / texts.length || 1
  return texts.map((text, row) => {
    let sum = 0
    for (const { term, weight } of terms) {
      const frequency = termsOf(text).filter(own => own === term).length
      const norm = 1.2 * (1 - 0.75 + (0.75 * lengths[row]!) / mean)
      sum += (weight * frequency * 2.2) / (frequency + norm)
    }
    return sum
  })
}

function scoresIn(
  words: WordIndex,
  query: readonly WeightedTerm[],
  first: number,
  end: number,
): Float32Array {
  const scores = new Float32Array(end - first)
  const holders = words.scoreRows(query, first, end, scores)
  const expected = [...scores.keys()].filter(row => scores[row] !== 0)
  if (holders.toSorted().join() !== expected.join()) throw new Error('other rows than scores')
  return scores
}

function same(found: ArrayLike<number>, wanted: readonly number[]): boolean {
  return (
    found.length === wanted.length &&
    wanted.every((score, i) => Math.abs(found[i]! - score) < 1e-4 * (1 + score))
  )
}

const texts = ['a cat and a dog', 'the dog', '', 'a a a a', 'zebra']
const terms = [
  { term: 'a', weight: 1 },
  { term: 'dog', weight: 2.5 },
  { term: 'unknown', weight: 9 },
]

t.test('scores, frequencies and mean length are those of the definition', async t => {
  const { words } = indexOf(texts)
  t.ok(same(scoresIn(words, terms, 0, 5), scoresOf(texts, terms)))
  const frequencies = ['a', 'dog', 'zebra', 'unknown', ''].map(term =>
    words.documentFrequency(term),
  )
  t.same(frequencies, [2, 2, 1, 0, 0])
  t.equal(words.count, 5)
  t.equal(words.meanLength, 12 / 5)
})

t.test('a range of rows, and none', async t => {
  const { words } = indexOf(texts)
  t.ok(same(scoresIn(words, terms, 1, 4), scoresOf(texts, terms).slice(1, 4)))
  t.equal(scoresIn(words, terms, 3, 3).length, 0)
})

t.test('an empty index', async t => {
  const { words } = indexOf([])
  t.equal(words.meanLength, 0)
  t.equal(words.documentFrequency('a'), 0)
  t.equal(scoresIn(words, terms, 0, 0).length, 0)
})

t.test('what was removed counts nowhere', async t => {
  const { words, rows } = indexOf(texts)
  rows.set([dead, 0, 1, 2, 3])
  words.remove(0)
  const remaining = texts.slice(1)
  t.ok(same(scoresIn(words, terms, 0, 4), scoresOf(remaining, terms)))
  t.equal(words.documentFrequency('a'), 1)
  t.equal(words.documentFrequency('cat'), 0)
  t.equal(words.meanLength, 7 / 4)
})

t.test('a term in one text counts to 255, and no further', async t => {
  const { words } = indexOf(['a '.repeat(300)])
  t.ok(
    same(
      scoresIn(words, [{ term: 'a', weight: 1 }], 0, 1),
      scoresOf(['a '.repeat(255)], [terms[0]!]),
    ),
  )
})

t.test('packing changes nothing', async t => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 1_500 }), (seed, count) => {
      const random = seededRandom(seed)
      const word = () => `w${Math.floor(400 * random() ** 3)}`
      const texts = Array.from({ length: count }, () =>
        Array.from({ length: Math.floor(12 * random()) }, word).join(' '),
      )
      const { words, rows } = indexOf(texts)
      const query = [word(), word(), word()].map((term, i) => ({ term, weight: i + 1 }))
      const removed = new Set(texts.keys().filter(() => random() < 0.4))
      let row = 0
      for (const slot of texts.keys()) rows[slot] = removed.has(slot) ? dead : row++
      for (const slot of removed) words.remove(slot)
      const remaining = texts.filter((_, slot) => !removed.has(slot))
      const isCorrect = (index: WordIndex) =>
        same(scoresIn(index, query, 0, remaining.length), scoresOf(remaining, query)) &&
        query.every(
          ({ term }) =>
            index.documentFrequency(term) ===
            remaining.filter(text => termsOf(text).includes(term)).length,
        )

      const before = isCorrect(words)
      words.trim()
      const trimmed = isCorrect(words)
      words.pick(Uint32Array.from(texts.keys()).filter(slot => !removed.has(slot)))
      rows.set(remaining.keys().toArray())
      const picked = isCorrect(words)
      words.add(remaining.length, query[0]!.term)
      rows[remaining.length] = remaining.length
      remaining.push(query[0]!.term)
      return before && trimmed && picked && isCorrect(words)
    }),
    { numRuns: 30 },
  )
  t.pass()
})

t.test('packed, a posting takes less than three bytes', async t => {
  const random = seededRandom(1)
  const word = () => `w${Math.floor(3_000 * random() ** 3)}`
  const texts = Array.from({ length: 3_000 }, () => Array.from({ length: 30 }, word).join(' '))
  const { words } = indexOf(texts)
  const postings = texts.reduce((sum, text) => sum + new Set(termsOf(text)).size, 0)
  words.trim()
  t.ok(words.bytes < postings * 3 + 3_000 * 40, `${words.bytes} bytes for ${postings} postings`)
})
