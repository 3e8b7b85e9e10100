import fc from 'fast-check'
import t from 'tap'
import { splitIntoChunks } from '#shared/vault/base/text-chunks.ts'
import { excludeTexts } from '#shared/vault/read/already-in-conversation.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'

const told = (texts: readonly string[]) => {
  const repeated = excludeTexts(texts)
  return (text: string): boolean => repeated.has(hashText(text), () => text)
}

const sentence = (index: number): string =>
  `In the year ${1900 + index} the number ${index * 7919} was painted over the door. `
const essay = Array.from({ length: 90 }, (_, index) => sentence(index)).join('')

t.test('a text is known whatever white space and form it comes in', async t => {
  const isTold = told(['  Caf\u00e9 au lait\n', 'yes'])
  t.ok(isTold('Cafe\u0301 au lait'))
  t.ok(isTold('yes '))
  t.notOk(isTold('Caf\u00e9 au lait!'))
  t.notOk(isTold('Caf\u00e9'))
  t.notOk(told([])('yes'))
})

t.test('of a long text every piece is known, and what only resembles one is not', async t => {
  const isTold = told(['short', essay, 'another'])
  const pieces = await splitIntoChunks(essay)
  t.ok(pieces.length > 3)
  for (const { text } of pieces) t.ok(isTold(text))
  t.ok(isTold(essay))
  for (const { text } of pieces) t.notOk(isTold(`${text.slice(0, -2)}?`))
  t.notOk(isTold(sentence(3)), 'a sentence from the middle may be said by itself')
  t.ok(isTold(sentence(89)), 'the end may be a piece')
  t.notOk(isTold('door.'), 'a word is none')
})

t.test('pieces of any text are known', async t => {
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
      const isTold = told(written)
      for (const text of written) {
        t.equal(isTold(text), true)
        for (const piece of await splitIntoChunks(text)) {
          // Text that repeats itself is looked at in a few places only.
          if (piece.text.trim().length < 256 || new Set(piece.text.match(/.{32}/gs)).size < 20)
            continue
          t.equal(isTold(piece.text), true, JSON.stringify(piece.text))
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
    const repeated = excludeTexts(texts)
    for (const [index, row] of rows.entries()) repeated.has(index, () => row)
  }
  const short = cpuMs(read(turns))
  const longer = cpuMs(read(long))
  t.comment(`${short.toFixed(2)} ms of short turns, ${longer.toFixed(2)} ms of 600 KB`)
  t.ok(short < 2, `${short} ms`)
  t.ok(longer < 10, `${longer} ms`)
})
