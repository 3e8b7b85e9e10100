import fc from 'fast-check'
import t from 'tap'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import { excludeTexts } from '#shared/vault/read/already-in-conversation.ts'
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

t.test('chunks of any text are excluded', async t => {
  const grain = fc.constantFrom(
    'word ',
    'Ende. ',
    '\n\n',
    '漢字',
    '👩‍👩‍👧',
    'e\u0301',
    'xyzzy',
    'Hallo, ',
  )
  const texts = fc.array(
    fc.array(fc.tuple(grain, fc.integer({ min: 1, max: 60 })), { maxLength: 60 }),
    {
      maxLength: 4,
    },
  )
  await fc.assert(
    fc.asyncProperty(texts, async parts => {
      const written = parts.map(part => part.map(([grain, times]) => grain.repeat(times)).join(''))
      const isExcluded = containsText(written)
      for (const text of written) {
        t.equal(isExcluded(text), true)
        for (const chunk of await splitIntoChunks(text)) {
          // Text that repeats itself is looked at in a few places only.
          if (chunk.text.trim().length < 256 || new Set(chunk.text.match(/.{32}/gs)).size < 20)
            continue
          t.equal(isExcluded(chunk.text), true, JSON.stringify(chunk.text))
        }
      }
    }),
    { numRuns: 30 },
  )
})

t.test('two hundred turns cost next to nothing', async t => {
  const turns = Array.from(
    { length: 200 },
    (_, index) => `${sentence(index)}${sentence(index * 3)}`,
  )
  const long = Array.from({ length: 200 }, (_, index) =>
    essay.slice(index * 10, index * 10 + 3_000),
  )
  const rows = Array.from({ length: 200 }, (_, index) => `${essay.slice(index, index + 500)}?`)
  const cpuMs = (work: () => void): number => {
    const times = Array.from({ length: 40 }, () => {
      const begun = process.cpuUsage()
      for (let run = 0; run < 5; run++) work()
      const { user, system } = process.cpuUsage(begun)
      return (user + system) / 5_000
    })
    return times.toSorted((a, b) => a - b)[10]!
  }
  const read = (texts: readonly string[]) => () => {
    const exclusion = excludeTexts(texts)
    for (const [index, row] of rows.entries()) exclusion.has(index, () => row)
  }
  const short = cpuMs(read(turns))
  const longer = cpuMs(read(long))
  t.comment(`${short.toFixed(2)} ms of short turns, ${longer.toFixed(2)} ms of 600 KB`)
  t.ok(short < 2, `${short} ms`)
  t.ok(longer < 10, `${longer} ms`)
})
