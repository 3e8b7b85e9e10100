import t from 'tap'
import { findStatements } from '#shared/search/profile/find-statements.ts'
import { readSamples, type Sample } from '#test/support/samples/profile-samples.ts'

const kindsOf = (text: string): string[] => [
  ...new Set(findStatements(text).map(({ kind }) => kind)),
]

/** The share of the kinds found that is right, and the share of the right ones that is found. */
function measure(samples: readonly Sample[]): { precision: number; recall: number } {
  let right = 0
  let found = 0
  let expected = 0
  for (const { sentence, kinds } of samples) {
    const got = kindsOf(sentence)
    right += got.filter(kind => kinds.includes(kind)).length
    found += got.length
    expected += kinds.length
  }
  return { precision: right / found, recall: right / expected }
}

t.test('statements of every language are found, and little else', async t => {
  const { tuned, heldOut } = readSamples()
  for (const language of new Set(tuned.map(sample => sample.language))) {
    for (const [name, samples, least] of [
      ['tuned', tuned, 0.95],
      ['held out', heldOut, 0.85],
    ] as const) {
      const { precision, recall } = measure(samples.filter(sample => sample.language === language))
      const figures = `precision ${precision.toFixed(2)}, recall ${recall.toFixed(2)}`
      t.comment(`${language} ${name}: ${figures}`)
      t.ok(precision >= least && recall >= least, `${language} ${name}: ${figures}`)
    }
  }
})

t.test('every quote is a part of the text, whatever the text', async t => {
  const { tuned, heldOut } = readSamples()
  const sentences = [...tuned, ...heldOut].map(({ sentence }) => sentence)
  for (let start = 0; start < sentences.length; start += 7) {
    const part = sentences.slice(start, start + 7)
    for (const text of [part.join(' '), part.join('\r\n'), `- ${part.join('\n\t- ')}`]) {
      for (const { quote } of findStatements(text)) t.ok(text.includes(quote), quote)
    }
  }
})

t.test('what is quoted, code, or given to be worked on is not said by the person', async t => {
  for (const text of [
    'Translate into German: I live in Porto.',
    'Please summarize this:\nMy name is Ada. I prefer tea.',
    '> I live in Porto.',
    '```\n// I prefer tabs.\nconst name = "my name is Ada"\n```',
    'He said: "I live in Porto, my name is Ada."',
    '| I live in Porto. | yes |',
  ])
    t.same(kindsOf(text), [], text)
})
