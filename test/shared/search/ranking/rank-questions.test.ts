import t from 'tap'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { rankQuestions } from '#shared/search/ranking/rank.ts'
import { indexOf, now, questionsOf } from '#test/support/samples/ranked.ts'

const { calibration } = localEmbedder()

const told = [
  'My cat is called Ada and she hates thunder.',
  'The boiler was serviced by Mr. Okonkwo in September.',
  'I keep the spare key in the blue flower pot.',
  'We repainted the hallway in a warm grey.',
  'My train to Utrecht leaves at ten past seven.',
]

const index = indexOf(told.map((text, i) => ({ text, at: now - (9 - i) * 86_400_000 })))

const ask = (message: string, floor = true): string[] =>
  rankQuestions([index], questionsOf(message), { now, limit: 30, floor, calibration }).map(
    ({ memory }) => memory.text,
  )

t.test('every part of a message finds what it finds alone', async t => {
  const questions = [
    'Who serviced the boiler?',
    'Where is the spare key?',
    'When does my train to Utrecht leave?',
  ]
  for (const [i, question] of questions.entries())
    t.same(ask(question)[0], told[[1, 2, 4][i]!], question)
  const found = ask(questions.join(' '))
  t.same(found.toSorted(), [told[1], told[2], told[4]].toSorted())
})

t.test('a statement beside a question brings what it is about, and nothing near it', async t => {
  const question = 'Where is the spare key?'
  t.same(ask(`I slept badly. The weather is grey today. ${question}`), [told[2]])
  const about = ask(`My cat Ada hates thunder. ${question}`)
  t.ok(about.includes(told[0]!), 'nearly its words')
  t.ok(about.includes(told[2]!))
  t.ok(ask(`I slept badly. The weather is grey today. ${question}`, false).includes(told[2]!))
})
