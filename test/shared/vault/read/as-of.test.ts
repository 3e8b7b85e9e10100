import t from 'tap'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { openSearchDeployment, vectorSearches } from '#test/support/start/search-deployment.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildKey, startTestApi, type TestClient } from '#test/support/start/api.ts'

const day = 86_400_000
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const places = ['Lisbon', 'Porto', 'Braga', 'Faro'].map((place, n) => ({
  text: `My flat is in ${place}.`,
  at: begin + n * day,
}))

/** Later rows that make an index too large for the budget of 1 MB. */
const fillers = Array.from({ length: 1_500 }, (_, n) => ({
  text: `The report number ${n} about a flat was filed under shelf ${n % 97}.`,
  at: begin + 100 * day + n * 60_000,
}))
const env = { INDEX_CACHE_MB: '1' }

/** What three questions find as of a moment, the second of which names a time. */
async function found(api: TestClient, as_of: number): Promise<string[][]> {
  const texts: string[][] = []
  for (const query of [
    'Where is my flat?',
    'Where was my flat since March 2025?',
    'flat in Faro',
  ]) {
    const { status, body } = await api.post('/v1/memory/search', { query, limit: 20, as_of })
    t.equal(status, 200)
    texts.push(body.memories.map(({ content }: { content: string }) => content).toSorted())
  }
  return texts
}

const known = (count: number): string[][] =>
  Array.from({ length: 3 }, () =>
    places
      .slice(0, count)
      .map(({ text }) => text)
      .toSorted(),
  )

t.test('a vault that does not fit into memory is searched by its search index', async t => {
  const { backend, key, api, double, settle } = await openSearchDeployment(t, env)
  await insertMemories(backend, key, [...places, ...fillers])
  await settle()
  t.same(await found(api, begin + day), known(2))
  t.ok(vectorSearches(double).length > 0, 'by the index')
  t.match(JSON.stringify(vectorSearches(double).at(-1)), /"at":\{"\$lt"/, 'which filters by time')
  t.same(await found(api, begin + 9 * day), known(4))
  t.comment('what is newer than the search index is left out, too')
  await insertMemories(backend, key, [{ text: 'My flat is in Evora.', at: begin + 9 * day }])
  t.same(await found(api, begin + day), known(2))
})

t.test('and without vector search by reading it', async t => {
  const backend = await createTestBackend(t, { env })
  const key = await buildKey(backend)
  const api = await startTestApi(t, backend, key)
  await insertMemories(backend, key, [...places, ...fillers])
  t.same(await found(api, begin + day), known(2))
  t.same(await found(api, begin + 9 * day), known(4))
})
