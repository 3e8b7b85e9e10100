import t from 'tap'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { rankQuestions } from '#shared/search/ranking/rank.ts'
import { indexOf, now, questionsOf, type Row } from '#test/support/samples/ranked.ts'

const DAY_MS = 86_400_000
const { calibration } = localEmbedder()

type DatedRow = Row & { daysAgo: number }

function ask(
  rows: readonly DatedRow[],
  message: string,
  options: { limit?: number; floor?: boolean } = {},
) {
  const index = indexOf(
    rows.map(({ daysAgo, ...row }, i) => ({ at: now - daysAgo * DAY_MS + i, ...row })),
  )
  const found = rankQuestions([index], questionsOf(message), {
    now,
    limit: 30,
    floor: true,
    calibration,
    ...options,
  })
  return found.map(({ memory }) => memory.text)
}

t.test('what is known of a person: reflections, the newest statements, no questions', async t => {
  const rows: DatedRow[] = [
    { text: 'I moved to Ghent with my two daughters.', daysAgo: 40 },
    { text: 'Which trams run at night?', daysAgo: 20 },
    { text: 'The night trams run on the lines one and two.', daysAgo: 20, role: 'assistant' },
    { text: 'Thanks, that is great!', daysAgo: 19 },
    { text: 'Write a poem about the sea.', daysAgo: 12 },
    { text: 'I work as a sound engineer for the opera.', daysAgo: 2 },
    { text: 'She values quiet evenings.', daysAgo: 1, tier: 2, importance: 7 },
    { text: 'Family comes before work for her.', daysAgo: 1, tier: 3, importance: 9 },
  ]
  const expected = [rows[0]!, rows[5]!, rows[6]!, rows[7]!].map(({ text }) => text)
  for (const message of [
    'What do you know about me?',
    'Summarize what you know about me.',
    'Hello! Was weißt du über mich? Danke!',
  ])
    t.same(ask(rows, message).toSorted(), expected.toSorted(), message)
  t.equal(ask(rows, 'What do you know about me?')[0], rows[7]!.text, 'the most important first')
  for (const message of ['Continue.', 'go on', 'Weiter bitte.', '继续'])
    t.same(ask(rows, message), [], `${message}: the conversation itself goes on`)
  t.same(ask([], 'What do you know about me?'), [])
})

t.test('how often something was: rows of many days before more of one day', async t => {
  const rows: DatedRow[] = [
    ...Array.from({ length: 12 }, (_, i) => ({
      text: `I swam ${i + 3} lengths in the pool and my swimming felt good.`,
      daysAgo: 9,
    })),
    ...[20, 31, 44, 58].map((daysAgo, i) => ({
      text: `Went swimming again, visit ${i} to the pool by the park.`,
      daysAgo,
    })),
    { text: 'The pool of the hotel is closed.', daysAgo: 70 },
  ]
  const found = ask(rows, 'How many times did I go swimming in the pool?', { limit: 6 })
  t.equal(found.filter(text => text.startsWith('Went swimming')).length, 4, 'each visit')
})

t.test('advice: what a person likes comes before what they only mention', async t => {
  const rows: DatedRow[] = [
    { text: 'The restaurant at the corner has a new sign.', daysAgo: 3 },
    { text: 'I prefer a restaurant with vegetarian dishes.', daysAgo: 200 },
    { text: 'We passed a restaurant on the way to the opera.', daysAgo: 2 },
  ]
  t.equal(ask(rows, 'Can you recommend a restaurant for tonight?')[0], rows[1]!.text)
})

t.test('of a long message the best piece is in a block; distant pieces stay apart', async t => {
  const at = now - 5 * DAY_MS
  const message = '00000000-0000-4000-8000-000000000000'
  const toPieces = (texts: readonly string[], isMessage = true): DatedRow[] =>
    texts.map((words, number) => ({
      text: `${words} ${'Some more of the manual follows here. '.repeat(30)}`,
      daysAgo: 5,
      at,
      tokens: 400,
      role: 'assistant',
      ...(isMessage && { piece: { message, number } }),
    }))
  const kiln = [
    'The kiln stands in the shed.',
    'The fuse of the kiln is a type C.',
    'Clean the kiln.',
  ]
  const question = 'Which type of fuse is in the kiln?'
  const pieces = toPieces(kiln)
  t.same(ask(pieces, question), [pieces[1]!.text])
  t.equal(ask(pieces, question, { floor: false }).length, 3, 'a search folds nothing')
  t.ok(ask(toPieces(kiln, false), question).length > 1, 'messages of one moment')
  const warranty = Array.from({ length: 8 }, (_, i) => `Part ${i} of the warranty.`)
  t.equal(ask(toPieces([kiln[0]!, ...warranty, kiln[1]!]), question).length, 2)
})
