import fc from 'fast-check'
import t from 'tap'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import { excludeTexts } from '#shared/vault/read/search/already-in-conversation.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'

const containsText = (texts: readonly string[]) => {
  const exclusion = excludeTexts(texts)
  return (text: string): boolean => exclusion.has(hashText(text), () => text)
}

const sentence = (index: number): string =>
  `In the year ${1900 + index} the number ${index * 7919} was painted over the door. `
const essay = Array.from({ length: 90 }, (_, index) => sentence(index)).join('')

t.test('a text is known whatever white space and form it comes in', async t => {
  const isExcluded = containsText(['  Caf\u00e9 au lait\n', 'yes'])
  t.ok(isExcluded('Cafe\u0301 au lait'))
  t.ok(isExcluded('yes '))
  t.notOk(isExcluded('Caf\u00e9 au lait!'))
  t.notOk(isExcluded('Caf\u00e9'))
  t.notOk(containsText([])('yes'))
})

t.test('of a long text every chunk is excluded, and what only resembles one is not', async t => {
  const isExcluded = containsText(['short', essay, 'another'])
  const chunks = await splitIntoChunks(essay)
  t.ok(chunks.length > 3)
  for (const { text } of chunks) t.ok(isExcluded(text))
  t.ok(isExcluded(essay))
  for (const { text } of chunks) t.notOk(isExcluded(`${text.slice(0, -2)}?`))
  t.notOk(isExcluded(sentence(3)), 'a sentence from the middle may be said by itself')
  t.ok(isExcluded(sentence(89)), 'the end may be a chunk')
  t.notOk(isExcluded('door.'), 'a word is none')
})

/** Any 32 characters stand in it once: text that repeats itself is looked at in a few places only. */
const numbered = ([grain, times]: [string, number], part: number): string =>
  Array.from({ length: times }, (_, n) => `${grain}${part}.${n} `).join('')

t.test('chunks of any text are excluded', async t => {
  const grains = ['word ', 'Ende. ', '\n\n', '漢字', '👩‍👩‍👧', 'e\u0301', 'xyzzy', 'Hallo, ']
  const run = fc.tuple(fc.constantFrom(...grains), fc.integer({ min: 1, max: 60 }))
  const texts = fc.array(fc.array(run, { maxLength: 60 }), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(texts, async parts => {
      const written = parts.map(part => part.map(numbered).join(''))
      const isExcluded = containsText(written)
      for (const text of written) {
        t.equal(isExcluded(text), true)
        for (const chunk of await splitIntoChunks(text)) {
          if (chunk.text.normalize().trim().length < 256) continue
          t.equal(isExcluded(chunk.text), true, JSON.stringify(chunk.text))
        }
      }
    }),
    { numRuns: 30 },
  )
})

t.test('for short turns no memory is read, and long ones cost in proportion', async t => {
  const rows = Array.from({ length: 200 }, (_, index) => `${essay.slice(index, index + 500)}?`)
  const readFor = (texts: readonly string[], memories = rows): number => {
    let read = 0
    const exclusion = excludeTexts(texts)
    for (const [index, row] of memories.entries()) exclusion.has(index, () => (read++, row))
    return read
  }
  const turns = Array.from(
    { length: 200 },
    (_, index) => `${sentence(index)}${sentence(index * 3)}`,
  )
  t.equal(readFor(turns), 0, 'their hashes decide')
  const long = Array.from({ length: 200 }, (_, index) =>
    essay.slice(index * 10, index * 10 + 3_000),
  )
  t.equal(readFor(long), rows.length)
})
