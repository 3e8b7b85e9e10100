import t from 'tap'
import { buildKey, createTestClient, type TestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { importFile, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

/** A search hides nothing that matches, in the order of one score. */

const { backend, base, newClient } = await startService(t)
type Row = { id: string; content: string; score: number; similarity?: number; why: string[] }

async function search(client: TestClient, query: string, limit = 200) {
  const { status, body } = await client.post('/v1/memory/search', { query, limit })
  t.equal(status, 200)
  return body as { memories: Row[]; totalMemories: number; matchingMemories: number }
}

const upload = async (client: TestClient, lines: object[]) =>
  t.match(await uploadFile(client, lines), { status: 200 })

const cities = ['Lisbon', 'Oslo', 'Riga', 'Ghent', 'Porto']
const diary = (city: string): string =>
  `In ${city} we met friends and paid for the trip together. ` +
  'We walked along the harbour until late and wrote postcards to everyone at home. '.repeat(24)

t.test('notes of one moment are all found, uploaded or ingested', async t => {
  const [uploaded, ingested] = [await newClient(), await newClient()]
  const timestamp = Date.parse('2026-03-01T00:00:00Z')
  await upload(
    uploaded,
    cities.map(city => ({ content: diary(city), timestamp })),
  )
  await ingested.post('/v1/memory/ingest?wait=true', {
    messages: cities.map(city => ({ role: 'user', content: diary(city), timestamp })),
  })
  for (const client of [uploaded, ingested]) {
    const { memories, totalMemories } = await search(client, 'friends paid for the trip together')
    t.equal(memories.length, cities.length)
    t.equal(totalMemories, cities.length)
  }
})

t.test('lines that share their times are no conversation', async t => {
  const client = await newClient()
  const at = (index: number) => Date.parse('2026-03-01T00:00:00Z') + index * 86_400_000
  const lines = Array.from({ length: 20 }, (_, index) => [
    { content: `The harbour project got ${index} new piles.`, timestamp: at(index) },
    { content: `Stir ${index} eggs into the flour.`, timestamp: at(index) },
  ])
  await upload(client, lines.flat())
  const { memories } = await search(client, 'harbour project')
  const recipes = memories.filter(({ content }) => content.startsWith('Stir'))
  t.same(
    recipes.filter(({ why }) => why.includes('reply')),
    [],
  )
  t.ok(recipes.every(({ score }) => score < 0.4))
})

t.test('all pieces of a long message are found, one of them is in a block', async t => {
  const client = await newClient()
  const chapter = (i: number) =>
    `Chapter ${i} of the Zephyr manual. ${'The gauge is read twice a day. '.repeat(60)}\n\n`
  const content = Array.from({ length: 6 }, (_, i) => chapter(i)).join('')
  await client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })
  const { memories, totalMemories, matchingMemories } = await search(client, 'Zephyr manual gauge')
  const stored = (await client.get('/v1/memory/stats')).body.memories
  t.ok(stored >= 5)
  t.equal(memories.length, stored)
  t.equal(totalMemories, stored)
  t.equal(matchingMemories, stored)
  t.equal((await search(client, 'Zephyr manual gauge', 2)).matchingMemories, stored)
  const exportOf = async (from: TestClient) =>
    (await from.get('/v1/memory/export')).body as { id: string; piece?: object }[]
  const exported = await exportOf(client)
  const pieces = exported.map((_, number) => ({ message: exported[0]!.id, number }))
  const moved = await newClient()
  t.equal((await importFile(moved, exported)).status, 200)
  const messages = [{ role: 'user', content: 'How often is the gauge of the Zephyr read?' }]
  for (const vault of [client, moved]) {
    t.same(
      (await exportOf(vault)).map(({ piece }) => piece),
      pieces,
    )
    const { body } = await vault.post('/v1/memory/prepare', { messages })
    t.ok(body.memories_found >= 1 && body.memories_found < stored)
  }
})

t.test('rows are in the order of the score that they show, and 1 is the same text', async t => {
  const { key, ...client } = await newClient()
  await insertMemories(backend, key, [
    { text: 'I like apple cake.' },
    { text: 'Apple pie is my favourite cake.' },
    { text: 'I prefer the new job offer from Siemens, said Ada.' },
    { text: 'The cake was baked by my aunt.' },
    { text: 'What does an apple cost?' },
    { text: 'She values honest work.', tier: 2, importance: 8 },
    { text: 'The tram to work is late.' },
  ])
  for (const query of ['apple cake', 'I like apple cake.', 'the job offer from Siemens', 'work']) {
    const { memories } = await search(client, query)
    const scores = memories.map(({ score }) => score)
    t.same(
      scores,
      scores.toSorted((one, other) => other - one),
      query,
    )
    for (const { content, score } of memories) t.equal(score === 1, content === query, content)
    t.ok(memories[0]!.similarity! > 0)
  }
})

t.test('a default graft copies what speaks of it', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  await insertMemories(backend, source, [
    { text: 'I am still thinking about the new job offer from Siemens in Munich.' },
    { text: 'The dentist moved our appointment to Thursday.' },
  ])
  const { body } = await createTestClient(base, source).post('/v1/memory/graft', {
    destination_key: destination,
    queries: ['the job offer from Siemens'],
    dry_run: true,
  })
  t.equal(body.count, 1)
  t.match(body.memories[0].snippet, /Siemens/)
})

t.test('a graft at threshold 0 copies everything, whatever is asked', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  const texts = ['I live in Ghent.', 'The boiler makes a noise.', 'Which trams run at night?']
  await insertMemories(
    backend,
    source,
    texts.map(text => ({ text })),
  )
  const { body } = await createTestClient(base, source).post('/v1/memory/graft', {
    destination_key: destination,
    queries: ['What do you know about me?'],
    threshold: 0,
    dry_run: true,
  })
  t.equal(body.count, texts.length)
})
