import t from 'tap'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/** Names and quotations that are made of function words are found by the words themselves. */

const { backend, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient()
const told = [
  'My favourite band is The Who.',
  'Who is the one that left the door open?',
  'I read the novel It in three nights.',
  'To be or not to be is my motto.',
  'The film Up made my father cry.',
  'Our neighbour Will has a boat.',
  'Die Serie heißt Er und sie lief im Herbst.',
  '我最喜欢的字是不。',
  'yep, that is how my boss says yes.',
  'كتب حرف و على الجدار',
  'The committee will meet; it is not up to me.',
]
await insertMemories(
  backend,
  key,
  [
    ...told,
    ...Array.from({ length: 40 }, (_, n) => `${n} crates of apples were sold at the fair.`),
  ].map(text => ({ text })),
)

const search = async (query: string): Promise<{ contents: string[]; matching: number }> => {
  const { status, body } = await api.post('/v1/memory/search', { query, limit: 20 })
  t.equal(status, 200)
  const contents = body.memories.map(({ content }: { content: string }) => content)
  return { contents, matching: body.matchingMemories }
}

for (const [query, text] of [
  ['The Who', told[0]],
  ['It', told[2]],
  ['to be or not to be', told[3]],
  ['Up', told[4]],
  ['Will', told[5]],
  ['Er', told[6]],
  ['不', told[7]],
  ['yep', told[8]],
  ['و', told[9]],
] as const) {
  t.test(`${query} is found first`, async t => {
    const { contents, matching } = await search(query)
    t.equal(contents[0], text)
    t.ok(matching >= 1)
  })
}

t.test('words apart are found behind the phrase; parts of words are not', async t => {
  const { contents } = await search('the who')
  t.same(contents.slice(0, 2).sort(), [told[0], told[1]].sort())
  t.notOk((await search('not')).contents.includes('Our neighbour Will has a boat.'))
  t.ok((await search('not')).contents.includes(told[10]!))
})

t.test('signs alone find what has them', async t => {
  t.equal((await search(';')).contents[0], told[10])
  t.equal((await search(' . ')).matching > 10, true)
})

t.test('no sign of a query breaks the search', async t => {
  const signs = Array.from({ length: 95 }, (_, n) => String.fromCodePoint(32 + n))
  const asked = signs.filter(sign => /[^\p{L} ]/u.test(sign))
  for (const query of asked.flatMap(sign => [sign, `to ${sign} be`])) {
    const { status } = await api.post('/v1/memory/search', { query, limit: 1 })
    t.equal(status, 200, query)
  }
})
