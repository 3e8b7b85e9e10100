import t from 'tap'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { indexOf, now, type Row } from '#test/support/samples/ranked.ts'

const { calibration } = localEmbedder()

/** Rows a minute apart, a day old. */
function search(rows: readonly Row[], text: string, floor = true) {
  const index = indexOf(rows)
  const found = rank([index], { text, vector: embed(text), now, limit: 30, floor, calibration })
  return found.map(({ memory }) => memory.text)
}

t.test('reflections of one commit are facts: none brings another along', async t => {
  const at = now - 3_600_000
  const commit = [
    'Anna is the new head of finance.',
    'The user eats lunch at the canteen.',
    'The user plans to adopt a greyhound from the shelter.',
  ].map(text => ({ text, tier: 2 as const, importance: 5, at }))
  t.same(search(commit, 'canteen'), [commit[1]!.text])
  t.same(search(commit, 'Who is Anna?'), [commit[0]!.text])
  const raw = { text: 'For lunch we had soup at the canteen on Tuesday.' }
  const found = search([...commit, raw], 'lunch canteen', false)
  t.same(found.slice(0, 2).sort(), [raw.text, commit[1]!.text].sort(), 'relevant ones come first')
})

t.test('a statement ranks above the same question asked before', async t => {
  const rows = [
    { text: 'My cat is called Ada, a grey tabby.' },
    { text: 'What a lovely name!', role: 'assistant' as const },
    { text: 'What is my cat called?' },
    { text: 'Your cat is called Ada.', role: 'assistant' as const },
    { text: 'What is the name of my cat?' },
  ]
  t.equal(search(rows, 'What is my cat called again?')[0], rows[0]!.text)
})

t.test('an answer comes along where it carries something, or was asked for', async t => {
  const praise = 'How lovely! Congratulations, that is wonderful to hear.'
  const rows = [
    { text: 'We adopted a greyhound called Pipoca.' },
    { text: praise, role: 'assistant' as const },
    { text: 'Which vet in Porto treats a greyhound?', at: now - 7_200_000 },
    { text: 'Doctor Sousa, near the river.', role: 'assistant' as const, at: now - 7_190_000 },
  ]
  const found = search(rows, 'Who is the vet of the greyhound?')
  t.ok(found.includes('Doctor Sousa, near the river.'), 'the only carrier')
  t.notOk(found.includes(praise))
  t.notOk(search(rows, 'What is our greyhound called?').includes(praise))
})
