import t from 'tap'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { answerConfidence } from '#shared/search/ranking/signals.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { indexOf, now, type Row } from '#test/support/samples/ranked.ts'

const embedder = localEmbedder()
const { calibration } = embedder

/** Rows a day apart. */
async function search(rows: readonly Row[], text: string) {
  const index = indexOf(
    rows.map((row, i) => ({ at: now - (rows.length - i) * 86_400_000, ...row })),
  )
  const vector = await embedder.embedQuery(text)
  return rank([index], { text, vector, now, limit: 30, floor: true, calibration })
}

const textsOf = (found: Awaited<ReturnType<typeof search>>): string[] =>
  found.map(({ memory }) => memory.text)

t.test('a question about the world, or a task, is no reason to tell anything', async t => {
  for (const [stored, question] of [
    ['Which harbour is best for a small boat?', 'Where do I keep my boat?'],
    ['Write a short text about a boat.', 'In which harbour is my boat?'],
  ] as const)
    t.same(textsOf(await search([{ text: stored }], question)), [], stored)
  for (const text of [
    'I keep my boat in the harbour of Marstal.',
    'Could you plan a trip with my boat from the harbour of Marstal?',
    'Ruth: Is the boat still in the harbour of Marstal?',
  ])
    t.same(textsOf(await search([{ text }], 'In which harbour is my boat?')), [text])
  t.same(
    textsOf(
      await search(
        [{ text: 'Is the boat still in the harbour?', speaker: 'Ruth' }],
        'In which harbour is the boat?',
      ),
    ).length,
    1,
    'what people ask each other is part of what happened',
  )
})

t.test('function words alone are no reason in any language', async t => {
  for (const [text, question] of [
    ['O casamento da minha prima é a 2 de maio.', 'Qual é o trabalho da minha irmã?'],
    ['La mia lezione di canto è passata al venerdì.', 'In quale città è la mia scuola?'],
    ['В мае у меня был отпуск.', 'На что у меня аллергия?'],
  ] as const)
    t.same(textsOf(await search([{ text }], question)), [], question)
})

t.test('a long reply that names everything ranks behind the line that answers', async t => {
  const fact = 'My parrot Kiko likes walnuts.'
  const reply = [
    'Keeping a parrot takes time, and what a parrot likes changes with its age.',
    ...Array.from({ length: 14 }, (_, i) => `Step ${i}: watch the cage, the light and the noise.`),
    'Most of them like seeds, fruit and nuts; give walnuts in small portions only.',
  ].join(' ')
  const rows = [
    { text: reply, role: 'assistant' as const, tokens: 300 },
    { text: fact },
    { text: reply.replaceAll('parrot', 'my parrot'), role: 'assistant' as const, tokens: 300 },
  ]
  t.equal(textsOf(await search(rows, 'What does my parrot like?'))[0], fact)
})

t.test('confidence: 0 without hits, higher the better the best hit fits', async t => {
  t.equal(answerConfidence([]), 0)
  const rows = [{ text: 'My boat lies in the harbour of Marstal.' }]
  const exact = answerConfidence(await search(rows, 'In which harbour does my boat lie?'))
  const weak = answerConfidence(await search(rows, 'Which port is my vessel in at the moment?'))
  t.ok(exact > 0.9 && exact <= 1, String(exact))
  t.ok(weak < exact, String(weak))
})
