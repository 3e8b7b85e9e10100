import t from 'tap'
import fc from 'fast-check'
import { splitIntoChunks, chunkTokensMax } from '#shared/vault/base/text-chunks.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { countTurns, startStepClock } from '#test/support/checks/step-clock.ts'

const joined = async (text: string): Promise<string> =>
  (await splitIntoChunks(text)).map(piece => piece.text).join('')

t.test('a short text is one piece', async t => {
  t.same(await splitIntoChunks('hello world'), [{ text: 'hello world', tokens: 2 }])
})

t.test('long texts are cut at paragraph ends first, then sentences, then words', async t => {
  const sentence = 'She said that the garden needs water every second day in July. '
  const paragraph = `${sentence.repeat(20).trim()}\n\n`
  const pieces = await splitIntoChunks(paragraph.repeat(6))
  t.ok(pieces.length > 1)
  t.ok(
    pieces.slice(0, -1).every(({ text }) => text.endsWith('\n\n')),
    'paragraphs stay whole',
  )

  const sentences = await splitIntoChunks(sentence.repeat(80))
  t.ok(
    sentences.every(({ text }) => text.trim().endsWith('July.')),
    'sentences stay whole',
  )

  const words = await splitIntoChunks('water '.repeat(1_500))
  t.ok(
    words.every(({ text }) => /^(water )+$/.test(text)),
    'words stay whole',
  )
})

t.test('joined again the pieces are the text, none longer than 512 tokens or blank', async t => {
  const grain = fc.constantFrom('word ', 'Ende. ', '\n\n', '漢字', '👩‍👩‍👧', 'é', 'xyzzy', '\t', 'ไทย')
  const held = fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(grain, fc.integer({ min: 1, max: 400 })), { maxLength: 8 }),
      async runs => {
        const text = runs.map(([part, times]) => part.repeat(times)).join('')
        return (
          (await joined(text)) === text &&
          (await splitIntoChunks(text)).every(
            piece =>
              piece.tokens <= chunkTokensMax &&
              piece.tokens === countTokens(piece.text) &&
              (text.trim() === '' || piece.text.trim() !== ''),
          )
        )
      },
    ),
    { numRuns: 60 },
  )
  await t.resolves(held)
})

t.test('a cut never falls inside a grapheme', async t => {
  const family = '👩‍👩‍👧‍👦'
  const pieces = await splitIntoChunks(family.repeat(800))
  t.ok(pieces.length > 1)
  t.ok(pieces.every(({ text }) => text.replaceAll(family, '') === ''))
})

t.test('a million characters without a space are cut', async t => {
  // In 0.3 s; what grows with the square of the length would take longer than an hour.
  t.equal((await joined('x'.repeat(1_000_000))).length, 1_000_000)
})

t.test('a huge text lets the event loop turn at every part of it', async t => {
  const paragraph = `${'The mill had to be closed for repairs in March. '.repeat(12)}\n\n`
  startStepClock(t)
  const { turns, stop } = countTurns()
  const chunks = await splitIntoChunks(paragraph.repeat(4_000))
  stop()
  t.ok(chunks.length > 1_000)
  t.ok(turns() >= 3_900, `${turns()} turns for 4,000 paragraphs`)
})
