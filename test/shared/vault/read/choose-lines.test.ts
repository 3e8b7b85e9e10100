import t from 'tap'
import type { Memory } from '#shared/domain/memory.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { rank } from '#shared/search/ranking/rank.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { chooseLines, leaveOutWeakRest } from '#shared/vault/read/prepare/choose-lines.ts'

const now = Date.UTC(2026, 10, 20, 15)
const DAY_MS = 86_400_000
const { dimension, calibration } = localEmbedder()

type Row = Partial<Memory> & { text: string; daysAgo: number }

/** The lines of a block that answers a question, each with whether it is marked. */
const tell = (rows: readonly Row[], text: string, tokensMax = 1_500) =>
  chooseLines(find(rows, text), text, tokensMax)

/** What is found for a question, best first. */
function find(rows: readonly Row[], text: string) {
  const index = createVaultIndex({ dimension, termsOf })
  index.put(
    rows.map(({ daysAgo, ...row }, i) => ({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      tier: 1 as const,
      role: 'user' as const,
      at: now - daysAgo * DAY_MS,
      tokens: Math.ceil(row.text.length / 4),
      vector: embed(row.text),
      ...row,
    })),
  )
  const found = rank([index], {
    text,
    vector: embed(text),
    now,
    limit: 30,
    floor: true,
    calibration,
  })
  return found.map(hit => ({ ...hit, source: 'core' as const }))
}

const markedOf = (lines: ReturnType<typeof tell>): string[] =>
  lines.flatMap(({ text, isLater }) => (isLater ? text : []))

t.test('of lines that answer the same, days apart, the latest is marked', async t => {
  const rows = [
    { text: 'My boss is Teresa, she founded the team.', daysAgo: 90 },
    { text: 'My new boss is called Duarte.', daysAgo: 14 },
    { text: 'We had fish soup in the harbour.', daysAgo: 3 },
  ]
  const lines = tell(rows, 'Who is my boss?')
  t.same(markedOf(lines), [rows[1]!.text])
  t.match(renderContextBlock(lines, now), /2 weeks ago · [^\]]* · user, later\] My new boss/)
  const third = { text: 'Since today my boss is Ines.', daysAgo: 0 }
  t.same(markedOf(tell([...rows, third], 'Who is my boss?')), [third.text], 'one only')
})

t.test('nothing is marked where one line answers, or both are of one day', async t => {
  const boss = { text: 'My boss is Teresa, she founded the team.', daysAgo: 90 }
  t.same(markedOf(tell([boss], 'Who is my boss?')), [])
  const others = [
    { text: 'Teresa likes the harbour.', daysAgo: 2 },
    { text: 'Who is my boss?', daysAgo: 1 },
    { text: 'Your boss is Teresa.', daysAgo: 1, role: 'assistant' as const },
  ]
  t.same(markedOf(tell([boss, ...others], 'Who is my boss?')), [], 'neither asks nor repeats')
  const sameDay = [boss, { text: 'My boss is Duarte, not Teresa.', daysAgo: 90 }]
  t.same(markedOf(tell(sameDay, 'Who is my boss?')), [])
})

t.test('the best line is recalled whatever it costs; long ones by their best passage', async t => {
  const filling = Array.from({ length: 60 }, (_, i) => `Sentence ${i} is about the weather.`)
  const long = [...filling, 'My boss is Teresa.', ...filling].join(' ')
  const [line] = tell([{ text: long, daysAgo: 9, tokens: 900 }], 'Who is my boss Teresa?', 40)
  t.ok(line?.passage, 'a passage')
  t.match(long.slice(line!.passage!.from, line!.passage!.to), 'My boss is Teresa.')
})

t.test('beside a line that plainly answers, what shares a word by chance is left out', async t => {
  const rows = [
    { text: 'I park the car in garage number 47 on level two.', daysAgo: 40 },
    { text: 'Our dog is called Ilona and she is afraid of fireworks.', daysAgo: 30 },
    { text: 'The car of the neighbours is loud.', daysAgo: 20 },
    { text: 'What kind of car suits a small family?', daysAgo: 10 },
    { text: 'We painted the fence green.', daysAgo: 9 },
  ]
  const left = (text: string) => {
    const found = find(rows, text)
    const rest = leaveOutWeakRest(found, selectQuestions(text))
    return { found: found.length, rest: rest.map(({ memory }) => memory.text) }
  }
  const plain = left('Where do I park the car in the garage?')
  t.ok(plain.found > 1, `${plain.found} found`)
  t.same(plain.rest, [rows[0]!.text])
  for (const text of [
    'Where do I park the car? And what is our dog called?',
    'Everything about the car in the garage, please: what do you know about it?',
    'What does the car cost?',
  ]) {
    const { found, rest } = left(text)
    t.equal(rest.length, found, `nothing is left out of several, of all, or of no answer: ${text}`)
  }
})

t.test('a summary is told of more memories, each by less, where not all fit', async t => {
  const told = (i: number): string =>
    `Step ${i} of the greenhouse is done. ` +
    Array.from({ length: 9 }, (_, n) => `On day ${n} we moved ${n + i} pots to the wall.`).join(' ')
  const rows = Array.from({ length: 24 }, (_, i) => ({
    text: told(i),
    daysAgo: 90 - i,
    tokens: 170,
  }))
  const found = find(rows, 'How did the greenhouse go?')
  const usual = chooseLines(found, 'How did the greenhouse go?', 800).length
  const listed = chooseLines(found, 'A summary of the greenhouse?', 800).length
  t.ok(usual > 0 && listed > 1.5 * usual, `${listed} and ${usual}`)
  const few = chooseLines(found.slice(0, 3), 'A summary of the greenhouse?', 1_500)
  const lengths = few.map(({ passage, text }) =>
    passage ? passage.to - passage.from : text.length,
  )
  t.ok(few.length === 3 && Math.min(...lengths) > 300, 'what fits is told as ever')
})
