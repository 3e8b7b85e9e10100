import fc from 'fast-check'
import t from 'tap'
import { embed, localEmbedder } from '#shared/models/local-embedder.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rank, type SearchQuery } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { indexOf as buildIndex, now, type Row } from '#test/support/samples/ranked.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const { dimension, calibration } = localEmbedder()

/** An index of rows; by default they are an hour apart and the last one is a day old. */
const indexOf = (rows: readonly (Row | string)[]): VaultIndex =>
  buildIndex(
    rows.map((row, i) => ({
      at: now - DAY_MS - (rows.length - i) * HOUR_MS,
      ...(typeof row === 'string' ? { text: row } : row),
    })),
  )

function ask(indexes: VaultIndex | VaultIndex[], text: string, options: Partial<SearchQuery> = {}) {
  const vector = embed(text)
  const usual: SearchQuery = { text, vector, now, limit: 10, floor: false, calibration }
  return rank([indexes].flat(), { ...usual, ...options })
}

const textsOf = (found: ReturnType<typeof rank>) => found.map(({ memory }) => memory.text)

const smallTalk = [
  'The weather turned out nicer than the forecast said it would.',
  'I fell asleep on the sofa during the quiz show last night.',
  'My train was late again and the coffee at the station was awful.',
  'We should repaint the hallway before the guests arrive.',
  'The neighbour practises the trumpet at the strangest hours.',
]

t.test('finds what a text is about by the heading that it begins with', async t => {
  const index = indexOf([
    ...smallTalk,
    'Payroll: closes on the last Friday',
    'Nora: the door is shut',
  ])
  for (const query of ['payroll', 'When is the payroll done?'])
    t.match(textsOf(ask(index, query, { vector: null }))[0], /^Payroll:/, query)
  const chat = Array.from({ length: 8 }, (_, n) => `Nora: we have ${n} tickets`)
  const among = indexOf([...chat, 'We asked Nora about the harbour'])
  t.same(textsOf(ask(among, 'Nora', { vector: null })), ['We asked Nora about the harbour'])
})

t.test('finds by other words, by exact words and by misspelt ones', async t => {
  const index = indexOf([
    ...smallTalk,
    'We adopted a greyhound called Margarine from the shelter in Pueblo.',
    'The invoice for the scaffolding has the number INV-2023-00417.',
    'Our accountant Greta does the taxes for a dinner set.',
  ])
  for (const [query, word] of [
    ['What pet does my family have?', 'Margarine'],
    ['INV-2023-00417', 'INV-2023-00417'],
    ['who is our acountant', 'Greta'],
    ['What is the name of the dog?', 'Margarine'],
  ] as const)
    t.ok(ask(index, query)[0]?.memory.text.includes(word), query)
})

t.test('rows are in the order of their scores, and 1 is the same text', async t => {
  const text = 'My cat is called Ada'
  const index = indexOf([...smallTalk, text, 'My cat is called Ada Lovelace, after the countess'])
  const found = ask(index, text, { wholeText: text })
  t.equal(found[0]?.memory.text, text)
  t.equal(found[0]?.score, 1)
  t.ok(found[0]!.similarity! > 0.99)
  const scores = found.map(({ score }) => score)
  const inOrder = scores.toSorted((one, other) => other - one)
  t.same(scores, inOrder)
  t.ok(scores.slice(1).every(score => score > 0 && score < 1))
  const others = ask(index, 'cat called Ada')
  t.ok(others.every(({ score }) => score < 1))
})

t.test('identical texts are returned once, the newest of them', async t => {
  const copies = Array.from({ length: 300 }, (_, i) => ({
    text: 'I would like tea, please.',
    at: now - (400 - i) * DAY_MS,
  }))
  const index = indexOf([...copies, 'I had tea with my aunt in Bath.', 'Green tea keeps me awake.'])
  const found = ask(index, 'tea please', { limit: 3 })
  t.equal(found.length, 3)
  t.equal(new Set(textsOf(found)).size, 3)
  const copy = found.find(({ memory }) => memory.text.startsWith('I would'))
  t.equal(copy?.memory.at, now - 101 * DAY_MS)
})

t.test('copies of one text take the place of one', async t => {
  const others = Array.from({ length: 60 }, (_, i) => `Tea number ${i} is brewed for ${i} minutes.`)
  const text = 'Please brew my tea for minutes.'
  const copies = Array.from({ length: 2_000 }, (_, i) => ({
    text,
    at: now - 9 * DAY_MS + i * 60_000,
  }))
  const index = indexOf([...others, ...copies])
  const found = ask(index, text, { limit: 30 })
  t.equal(new Set(textsOf(found)).size, 30)
  t.equal(found[0]?.memory.at, copies.at(-1)!.at)
  t.same(new Set(textsOf(ask(index, text, { limit: 100 }))), new Set([text, ...others]))
})

t.test('a copy within the asked times is found, wherever its text stood first', async t => {
  const text = 'The ferry to the island leaves from pier nine.'
  const first = { text, at: now - 90 * DAY_MS }
  const fillers = Array.from(
    { length: 60 },
    (_, i) => `Tea number ${i} is brewed for ${i} minutes.`,
  )
  const later = { text, at: now - 3 * DAY_MS }
  const index = indexOf([first, ...fillers, later, { text, at: now - HOUR_MS }])
  const bounds = { from: now - 4 * DAY_MS, to: now - 2 * DAY_MS }
  for (const options of [bounds, { ...bounds, tiers: [1] as const }]) {
    const found = ask(index, 'From which pier does the ferry leave?', options)
    t.same([found[0]?.memory.text, found[0]?.memory.at], [text, later.at])
  }
})

t.test('an old memory that fits better wins against any number of new ones', async t => {
  const index = indexOf([
    { text: 'My blood group is zero negative, the doctor said.', at: now - 3_000 * DAY_MS },
    ...Array.from({ length: 400 }, (_, i) => ({
      text: `My group met again, we talked about chapter ${i} of the book.`,
      at: now - i * 60_000,
    })),
  ])
  t.match(ask(index, 'What is my blood group?')[0]?.memory.text, /zero negative/)
})

t.test('of near equals the newer comes first', async t => {
  const index = indexOf([
    { text: 'The password hint is the name of the first boat.', at: now - 90 * DAY_MS },
    { text: 'The password hint is the name of the second boat.', at: now - HOUR_MS },
  ])
  t.match(ask(index, 'password hint boat')[0]?.memory.text, /second/)
})

t.test('a row that is unrelated to the query is not returned', async t => {
  t.same(ask(indexOf(smallTalk), 'quantum chromodynamics on a lattice'), [])
  t.same(ask(indexOf([]), 'anything'), [])
})

t.test('the floor lets answers pass, and nothing where nothing is relevant', async t => {
  const index = indexOf([...smallTalk, 'My daughter Nora plays the cello in the youth orchestra.'])
  t.same(ask(index, 'Which emperor built the aqueduct?', { floor: true }), [])
  t.match(textsOf(ask(index, 'Which instrument does my daughter play?', { floor: true })), [
    /cello/,
  ])
})

t.test('the answer after a question is found though it shares no word with it', async t => {
  const at = now - 100 * DAY_MS
  const index = indexOf([
    ...smallTalk,
    { text: 'So which colour did you choose for the nursery?', at },
    { text: 'Sage, with little foxes along the skirting boards.', at: at + 40_000 },
    { text: 'Sage tea tastes of grandmothers.', at: at + 20 * DAY_MS },
  ])
  const found = textsOf(ask(index, 'Which colour is the nursery?'))
  t.match(found.slice(0, 2), [/choose for the nursery/, /little foxes/])
})

t.test('turns of other conversations are no context', async t => {
  const at = now - 100 * DAY_MS
  const index = indexOf([
    { text: 'Which colour did you choose for the nursery?', at },
    { text: 'Foxes along the skirting boards.', at: at + 2 * HOUR_MS },
  ])
  t.equal(ask(index, 'colour of the nursery').length, 1)
})

t.test('lines of a list are no context of each other, messages of an exchange are', async t => {
  const list = [
    'My landlord is Mr. Weber.',
    'The wifi password is on the fridge.',
    'I drive a blue Skoda.',
    'I work as a nurse.',
  ]
  // As a file of facts without times is stored: a millisecond apart.
  const index = indexOf(list.map((text, i) => ({ text, at: now - DAY_MS + i })))
  t.same(textsOf(ask(index, 'Who is my landlord?', { floor: true })), list.slice(0, 1))
  const exchange = indexOf([
    { text: 'Who is my landlord?', at: now - DAY_MS },
    { text: 'That would be Weber, on the second floor.', at: now - DAY_MS + 1, role: 'assistant' },
    ...smallTalk,
  ])
  t.match(textsOf(ask(exchange, 'Who is my landlord?', { floor: true })), [/landlord/, /Weber/])
})

t.test('with the floor context rows are returned as replies only', async t => {
  const turns = [
    'My cat is called Ada.',
    'Splendid, after the countess!',
    'Snow on Thursday!',
    'Then we do the shopping before.',
  ]
  const index = indexOf([
    ...smallTalk,
    ...turns.map((text, i) => ({ text, at: now - DAY_MS + i * 60_000 })),
  ])
  const found = textsOf(ask(index, 'What is my cat called?', { floor: true }))
  t.same(found.toSorted(), turns.slice(0, 2).toSorted())
})

t.test('a row that matches by context only ranks behind that context', async t => {
  const reply =
    'A lovely choice! The countess of Lovelace wrote the first program for a machine that was never ' +
    'built, and her notes on it were longer than the paper that she had been asked to translate.'
  const index = indexOf([
    ...smallTalk,
    { text: 'My cat is called Ada.', at: now - DAY_MS },
    { text: reply, at: now - DAY_MS + 60_000, role: 'assistant' },
  ])
  const found = ask(index, 'cat')
  t.same(textsOf(found).slice(0, 2), ['My cat is called Ada.', reply])
  t.same(textsOf(ask(index, 'cat', { limit: 1 })), ['My cat is called Ada.'])
})

t.test('a time in the query boosts rows of that time', async t => {
  const index = indexOf([
    { text: 'We spent the holiday by a lake with too many geese.', at: Date.UTC(2022, 6, 12) },
    { text: 'We spent the holiday by a lake with a tiny ferry.', at: Date.UTC(2023, 6, 12) },
    { text: 'We spent the holiday by a lake with a broken jetty.', at: Date.UTC(2024, 6, 12) },
  ])
  t.match(ask(index, 'Our holiday by the lake in July 2023')[0]?.memory.text, /ferry/)
  t.match(textsOf(ask(index, 'What happened in July 2022?', { floor: true })), [/geese/])
})

t.test('a name in the query boosts the turns of its speaker, by prefix or by field', async t => {
  const turns = ['Caroline', 'Melanie'].map(name => ({ name, text: 'I went to the parade.' }))
  const written = indexOf(turns.map(({ name, text }) => `${name}: ${text}`))
  t.match(ask(written, 'Where did Melanie go, to which parade?')[0]?.memory.text, /^Melanie/)
  const named = indexOf(
    turns.map(({ name, text }) => ({
      text: `${text} It rained on ${name.length}.`,
      speaker: name,
    })),
  )
  t.equal(ask(named, 'Which parade did Caroline go to?')[0]?.memory.speaker, 'Caroline')
  t.equal(ask(named, 'Which parade did Melanie go to?')[0]?.memory.speaker, 'Melanie')
})

t.test('what I said and what you recommended', async t => {
  const index = indexOf([
    { text: 'For the hike I thought of the ridge trail above the village.', role: 'user' },
    { text: 'For the hike I thought of the forest trail along the creek.', role: 'assistant' },
  ])
  t.equal(ask(index, 'Which hike trail did you recommend?')[0]?.memory.role, 'assistant')
  t.equal(ask(index, 'Which hike trail did I want?')[0]?.memory.role, 'user')
})

t.test('tiers, importance and time bound what is searched', async t => {
  const rows: Row[] = [
    { text: 'She planted an apple tree in the yard.', tier: 1 },
    { text: 'She loves her apple tree and her yard.', tier: 2, importance: 3 },
    { text: 'An apple tree in a yard is her idea of home.', tier: 3, importance: 8 },
  ]
  const index = indexOf(rows)
  const tiersOf = (options: Partial<SearchQuery>) =>
    ask(index, 'apple tree in the yard', options)
      .map(({ memory }) => memory.tier)
      .sort()
  t.same(tiersOf({}), [1, 2, 3])
  t.same(tiersOf({ tiers: [2] }), [2])
  t.same(tiersOf({ tiers: [2, 3] }), [2, 3])
  t.same(tiersOf({ importance: 1 }), [2, 3])
  t.same(tiersOf({ importance: 5 }), [3])
  t.same(tiersOf({ tiers: [1], importance: 1 }), [])
  const last = now - DAY_MS - HOUR_MS
  t.same(tiersOf({ from: last }), [3])
  t.same(tiersOf({ to: last }), [1, 2])
})

t.test('duplicates and filtered rows do not prevent results', async t => {
  const rows = Array.from({ length: 60 }, (_, i): Row => {
    const text = i % 3 === 0 ? 'The greyhound sleeps on the sofa.' : `Reflection ${i} on dogs.`
    return { text, tier: 2, importance: i % 3 === 0 ? 9 : 1 }
  })
  const found = ask(indexOf(rows), 'Where does the greyhound sleep?', { importance: 5, limit: 30 })
  t.same(textsOf(found), ['The greyhound sleeps on the sofa.'])
})

t.test('reflections get a fair share and never crowd out a much better raw row', async t => {
  const raw = Array.from({ length: 40 }, (_, i) => `We sang song ${i} in the choir on Tuesday.`)
  const reflections = Array.from({ length: 40 }, (_, i): Row => {
    return { text: `The choir means ${i} things to her.`, tier: 2, importance: 5 }
  })
  const index = indexOf([...raw, ...reflections])
  const found = ask(index, 'What do we sing in the choir on Tuesday?', { limit: 20 })
  const shared = found.filter(({ memory }) => memory.tier === 2).length
  t.ok(shared <= 10, `${shared} of 20 are reflections`)
  t.equal(found[0]?.memory.tier, 1)

  const about = indexOf([
    ...Array.from({ length: 40 }, (_, i): Row => {
      return { text: `The choir on Tuesday, evening ${i}, is her anchor.`, tier: 2, importance: 5 }
    }),
    'We sang the requiem in the choir on Tuesday.',
  ])
  t.ok(
    ask(about, 'What did we sing in the choir?', { limit: 5 }).some(
      ({ memory }) => memory.tier === 1,
    ),
  )
})

t.test('several indexes are one ranking, and each hit has the number of its index', async t => {
  const core = indexOf([...smallTalk, 'The wedding is on the nineteenth of June.'])
  const session = indexOf(['The wedding dress is at the tailor.'])
  const found = ask([core, session], 'wedding', { limit: 2 })
  t.same(found.map(({ indexNumber }) => indexNumber).sort(), [0, 1])
})

t.test('without a vector the ranking is by words alone', async t => {
  const index = indexOf([...smallTalk, 'The kiln reached twelve hundred degrees.'])
  const [first] = ask(index, 'kiln degrees', { vector: null })
  t.match(first?.memory.text, /kiln/)
  t.ok(first!.score > 0.5)
  t.equal(first?.similarity, undefined)
})

t.test('works with embedders whose unrelated texts are far from 0', async t => {
  // A large common part, as in models whose cosines all lie between 0.7 and 1.
  const shifted = (text: string) => {
    const vector = embed(text).map(value => value * Math.sqrt(0.3))
    vector[0] = Math.sqrt(0.7)
    const length = Math.hypot(...vector)
    return vector.map(value => value / length)
  }
  const texts = [...smallTalk, 'My sister studies seagrass in Kiel.']
  const index = createVaultIndex({ dimension, termsOf })
  index.put(
    texts.map((text, i) => ({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      tier: 1,
      role: 'user',
      at: now - i * DAY_MS,
      tokens: 10,
      text,
      vector: shifted(text),
    })),
  )
  const text = 'What does my sister study?'
  const found = rank([index], {
    text,
    vector: shifted(text),
    now,
    limit: 10,
    floor: true,
    calibration: { unrelated: 0.74, same: 0.95, floor: 0.3 },
  })
  t.match(textsOf(found), [/seagrass/])
})

t.test('any query of any vault: at most the limit, in order, each text once', async t => {
  const word = fc.constantFrom(...'tea boat Ada: yesterday seven 猫 kiln ? the'.split(' '))
  const text = fc.array(word, { minLength: 1, maxLength: 6 }).map(words => words.join(' '))
  const row = fc.record({
    text,
    tier: fc.constantFrom(1 as const, 2 as const, 3 as const),
    at: fc.integer({ min: now - 1_000 * DAY_MS, max: now }),
    importance: fc.integer({ min: 1, max: 10 }),
  })
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 60 }),
      text,
      fc.integer({ min: 1, max: 20 }),
      (rows, query, limit) => {
        const found = ask(indexOf(rows), query, { limit })
        const texts = textsOf(found)
        return (
          found.length <= limit &&
          new Set(texts).size === texts.length &&
          found.every(({ score, relevance }) => score >= 0 && score <= 1 && relevance >= 0) &&
          found.every(({ relevance }, i) => i === 0 || relevance <= found[i - 1]!.relevance)
        )
      },
    ),
    { numRuns: 200 },
  )
  t.pass('200 vaults')
})
