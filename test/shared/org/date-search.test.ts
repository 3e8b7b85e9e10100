import fc from 'fast-check'
import t from 'tap'
import {
  createTestClient,
  startJobWorkers,
  startTestApi,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readDatePages } from '#test/support/samples/date-pages.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  readBilledUsage,
  insertStoredMemories,
  readVaultScope,
} from '#test/support/checks/stored-memories.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/start/team.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

const provider = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, {
  env: { EMBEDDINGS: 'local', OPENAI_API_KEY: 'secret', OPENAI_BASE_URL: provider.baseUrl },
})
const { base } = await startTestApi(t, backend)
const hour = 3_600_000
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()

type Row = { content: string; source: string; [field: string]: unknown }
const ask = (client: TestClient, body: object = {}, headers = {}) =>
  client.post('/v1/memory/date-search', { from: '2025-03-01', to: '2025-03-02', ...body }, headers)
const told = async (client: TestClient, body: object = {}, headers = {}): Promise<string[]> =>
  (await ask(client, body, headers)).body.memories.map(
    ({ source, content }: Row) => `${source}: ${content}`,
  )

async function built(): Promise<{ team: Team; key: string; member: TestClient; ids: string[] }> {
  const team = await buildTeam(backend)
  await team.defineRole('Money', ['finance'])
  const key = await team.addMember('ann@example.com')
  await insertStoredMemories(backend, await readVaultScope(backend, key), [
    { text: 'my ferry is booked', at: begin },
    { text: 'my ferry was late', at: begin + 2 * hour },
    { text: 'I like ferries', tier: 2, importance: 5, coversFrom: begin, at: begin + 3 * hour },
    { text: 'in the session', at: begin, session: 'trip' },
  ])
  const ids = await seedTeamMemories(backend, team, [
    { text: 'the ferry budget is 5 million', tags: ['finance'], acquiredAt: begin + hour },
    { text: 'the ferry leaves at nine', author: 'bob@example.com', acquiredAt: begin + hour },
    { text: 'the ferry of last year', acquiredAt: begin - 1_000 * hour },
  ])
  return { team, key, member: createTestClient(base, key), ids }
}

t.test('200: a span of time lists what is shared, as far as roles allow', async t => {
  const { team, member, ids } = await built()
  const own = ['core: I like ferries', 'core: my ferry was late']
  const before = ['core: my ferry is booked']
  t.same(await told(member), [own[1], 'org: the ferry leaves at nine', own[0], ...before])
  await team.assignRoles('ann@example.com', ['Money'])
  t.same((await told(member)).filter(row => row.startsWith('org')).sort(), [
    'org: the ferry budget is 5 million',
    'org: the ferry leaves at nine',
  ])
  const { body } = await ask(member, { order: 'oldest_first' })
  const row = body.memories.find(({ id }: Row) => id === ids[0])
  t.match(row, { source: 'org', tags: ['finance'], tier: 1, timestamp: iso(begin + hour) })
  t.notOk('score' in row)
  const other = body.memories.find(({ id }: Row) => id === ids[1])
  t.match(other, { tags: [], author: 'bob@example.com' })
  const session = await told(member, {}, { 'x-session-id': 'trip' })
  t.same(session.at(-1), 'session: in the session')
  t.equal(session.filter(row => row.startsWith('org')).length, 2)
  t.same(await told(member, { tiers: [2, 3] }), ['core: I like ferries'])
  t.same(await told(member, { importance: 1 }), ['core: I like ferries'])
  t.same(await told(member, { source: 'core' }), [own[1], own[0], ...before])
  const ofTeam = (await told(member, { source: 'org' })).sort()
  t.same(ofTeam, ['org: the ferry budget is 5 million', 'org: the ferry leaves at nine'])
  t.same(await told(member, { source: 'session' }), [], 'no session is asked')
  await team.assignRoles('ann@example.com', [])
  t.same(await told(member, { source: 'org' }), ['org: the ferry leaves at nine'])
})

t.test('200: with a query both are one ranking, in one space or in two', async t => {
  const { team, member } = await built()
  const query = 'When does the ferry leave at nine?'
  const found = await told(member, { query, tiers: [1] })
  t.same(await told(member, { query, source: 'org' }), [found[0]])
  t.equal(found[0], 'org: the ferry leaves at nine')
  t.ok(found.includes('core: my ferry was late'))
  t.notMatch(found.join(), /budget|last year/)
  const scored = (await ask(member, { query })).body.memories
  t.ok(scored.every(({ score }: Row) => typeof score === 'number'))

  const elsewhere = { 'x-embedding-model': 'openai/text-embedding-3-small' }
  t.same(await told(member, { query }, elsewhere), ['org: the ferry leaves at nine'])
  await team.assignRoles('ann@example.com', ['Money'])
  t.match((await told(member, { query: 'ferry budget' })).join(), /budget is 5 million/)
})

t.test('200: a text that is private and shared is two rows, ranked in two spaces too', async t => {
  await startJobWorkers(backend, 'ingest')
  const { member } = await built()
  const elsewhere = { 'x-embedding-model': 'openai/text-embedding-3-small' }
  const message = { role: 'user', content: 'the ferry leaves at nine', timestamp: begin }
  const said = await member.post('/v1/memory/ingest?wait=true', { messages: [message] }, elsewhere)
  t.equal(said.status, 200)
  const query = 'When does the ferry leave?'
  t.same((await told(member, { query, tiers: [1] }, elsewhere)).toSorted(), [
    'core: the ferry leaves at nine',
    'org: the ferry leaves at nine',
  ])
})

t.test('what is returned is billed and leaves a trail', async t => {
  const { team, key, member } = await built()
  const { body } = await ask(member)
  const bills = await readBilledUsage(backend, await readVaultScope(backend, key), 'date-search')
  t.same(bills, [{ tokens: body.token_count, session: null }])
  await backend.retrievals.flush()
  const { rows } = await backend.postgres.query(
    'select permitted, dropped from shared_retrievals where org = $1',
    [team.org],
  )
  t.same(rows, [{ permitted: 2, dropped: 1 }])
})

t.test('pages over both vaults are all rows a member may see, each once, in order', async t => {
  const moment = fc.integer({ min: 0, max: 9 })
  const own = fc.array(fc.record({ at: moment, tokens: fc.integer({ min: 1, max: 700 }) }))
  const tags = fc.subarray(['finance', 'board'])
  const words = fc.integer({ min: 1, max: 300 })
  const shared = fc.array(fc.record({ at: moment, words, tags }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(own, shared, fc.boolean(), async (mine, ours, oldestFirst) => {
      const team = await buildTeam(backend)
      await team.defineRole('Money', ['finance'])
      const key = await team.addMember('ann@example.com', ['Money'])
      const planted = mine.map(({ at, tokens }, n) => ({
        text: `mine ${n}`,
        at: begin + at,
        tokens,
      }))
      const ids = await insertStoredMemories(backend, await readVaultScope(backend, key), planted, {
        vectors: false,
      })
      const items = ours.map(({ at, words, tags }, n) => ({
        text: `ours ${n}${' word'.repeat(words)}`,
        tags,
        acquiredAt: begin + at,
      }))
      const shown = (await seedTeamMemories(backend, team, items)).filter(
        (_, n) => !ours[n]!.tags.includes('board'),
      )
      const order = oldestFirst ? 'oldest_first' : 'newest_first'
      const span = { from: iso(begin), to: iso(begin + 9) }
      const caller = await resolveCaller(backend, key)
      const found = (await readDatePages(backend, caller, span, { order })).flat()
      t.same(found.map(({ id }) => id).sort(), [...ids, ...shown].sort())
      const keys = found.map(({ at, id }) => `${iso(at)} ${id}`)
      t.same(keys, oldestFirst ? keys.toSorted() : keys.toSorted().toReversed())
    }),
    { numRuns: 25 },
  )
})
