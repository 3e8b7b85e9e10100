import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import { reembedStep } from '#shared/vault/reembed/reembed.ts'
import { sharedMemoryFilter } from '#shared/org/memories/shared-memories.mongo.ts'
import { reembedSharedVaults } from '#shared/org/memories/reembed-shared-vaults.ts'
import {
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { findOrg } from '#shared/org/base/orgs.postgres.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/start/team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { ageRows, setDefaultEmbeddings, setSpaceOfOrg } from '#test/support/checks/alter.ts'

const provider = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, {
  env: { EMBEDDINGS: 'local', OLLAMA_BASE_URL: provider.baseUrl },
})
const { query } = backend.postgres
/** The same service, after its operator has chosen another model; nobody takes its jobs by itself. */
const later = await createTestBackend(t, {
  config: { ...backend.config, embeddingModel: 'ollama/one' },
})
const { base: before } = await startTestApi(t, backend)
const { base: after } = await startTestApi(t, later)
const local = (await backend.embedders.get()).space
const remote = 'ollama__one-64'

const spaceOf = async ({ org }: Team): Promise<string | null> =>
  (await query<{ space: string | null }>('select space from orgs where id = $1', [org])).rows[0]!
    .space

const movesOf = async ({ vault }: Team): Promise<{ id: string; state: string }[]> =>
  (
    await query<{ id: string; state: string }>(
      `select id, state from operations where vault = $1 and kind = 'reembed' order by id`,
      [vault],
    )
  ).rows

async function spacesIn(team: Team): Promise<Record<string, number>> {
  const rows = await backend.mongo.memories.find(sharedMemoryFilter(team)).toArray()
  return Object.fromEntries(
    Object.entries(Object.groupBy(rows, ({ vectors }) => Object.keys(vectors).sort().join())).map(
      ([spaces, some]) => [spaces, some!.length],
    ),
  )
}

/** How many of the team's facts a member is given. */
const finds = async (base: string, key: string, body: object = {}): Promise<number> => {
  const asked = { query: 'fact number', limit: 200, ...body }
  const { status, body: found } = await createTestClient(base, key).post('/v1/memory/search', asked)
  if (status !== 200) throw new Error(`${status} ${found.error}`)
  return found.memories.filter(({ source }: { source: string }) => source === 'org').length
}

const facts = (count: number, of = '') =>
  Array.from({ length: count }, (_, n) => ({ text: `fact number ${n} ${of}` }))

/** Looks after all shared vaults, and tells how often that of the team has set out. */
async function lookAfter(as: Backend, team: Team): Promise<number> {
  const known = (await movesOf(team)).length
  await reembedSharedVaults(as)
  return (await movesOf(team)).length - known
}

t.test('a new organization is in the space of the service at its first search', async t => {
  const team = await buildTeam(backend)
  t.equal(await spaceOf(team), null)
  t.equal(await lookAfter(backend, team), 0)
  t.equal(await spaceOf(team), local)
  await seedTeamMemories(backend, team, facts(3))
  t.equal(await lookAfter(backend, team), 0)
  t.same(await movesOf(team), [])
})

t.test('another model: everything is found all the way, and nothing is left behind', async t => {
  const team = await buildTeam(backend)
  const key = await team.addMember('ann@example.com')
  const owner = await buildKey(backend, team.email)
  const ids = await seedTeamMemories(backend, team, facts(300))
  await lookAfter(backend, team)

  t.equal(await finds(after, key), 200, 'before anybody has looked, with the largest answer')
  t.equal(await finds(after, key, { embeddings: 'local' }), 200)
  const admin = createTestClient(after, team.adminKey)
  const listed = await admin.get(`/v1/orgs/${team.org}/memories?q=fact%20number%207`)
  t.match(listed.body.items[0], { text: 'fact number 7 ' })
  const pages = { from: '2020-01-01', query: 'fact number 7', max_tokens: 200_000 }
  const dated = await createTestClient(after, key).post('/v1/memory/date-search', pages)
  t.match(dated.body.memories[0], { content: 'fact number 7 ', source: 'org' })
  t.match((await createTestClient(after, key).post('/v1/memory/warmup', {})).status, 200)

  t.equal(await lookAfter(later, team), 1)
  t.equal(await lookAfter(later, team), 0, 'once')
  const [move] = await movesOf(team)
  t.match(await createTestClient(after, owner).get(`/v1/operations/${move!.id}`), {
    status: 200,
    body: { kind: 'reembed', state: 'accepted' },
  })

  // What is written meanwhile, by processes of either configuration, is found by both.
  const [added] = await seedTeamMemories(later, team, [{ text: 'a new tomato' }])
  const by = { operation: mintId(), actor: team.email }
  await updateSharedMemory(later, team, { ...by, id: ids[0]!, text: 'an edited turnip' })
  await deleteSharedMemory(later, team, { ...by, id: ids[1]! })
  const has = async (from: string, text: string): Promise<boolean> => {
    const { body } = await createTestClient(from, key).post('/v1/memory/search', {
      query: text,
      limit: 5,
    })
    return body.memories.some(({ content }: { content: string }) => content === text)
  }
  for (const base of [before, after]) {
    t.ok(await has(base, 'a new tomato'))
    t.ok(await has(base, 'an edited turnip'))
    t.notOk(await has(base, 'fact number 1 '))
  }

  for (let step = 0; step < 3; step++) {
    await reembedStep(later, { operation: move!.id, n: step })
    await reembedStep(later, { operation: move!.id, n: step }, undefined)
    t.equal(await finds(after, key), 200, `after step ${step}`)
    t.equal(await spaceOf(team), step < 2 ? local : remote)
  }
  t.same(await spacesIn(team), { [`${local},${remote}`]: 300 })
  const [late] = await seedTeamMemories(backend, team, [{ text: 'a late radish' }])
  t.ok(await has(after, 'a late radish'), 'by a process that knows the earlier model alone')
  for (let step = 3; step < 6; step++) await reembedStep(later, { operation: move!.id, n: step })
  t.match(await movesOf(team), [{ state: 'done' }])
  const spaces = await spacesIn(team)
  t.equal(spaces[remote], 301)
  for (const base of [before, after]) {
    for (const text of ['a new tomato', 'an edited turnip', 'a late radish'])
      t.ok(await has(base, text), text)
    t.equal(await finds(base, key), 200)
  }
  t.same([typeof added, typeof late], ['string', 'string'])
  t.equal(await lookAfter(later, team), 0)
  t.equal(await lookAfter(backend, team), 0, 'and processes of both do not take it back and forth')
})

t.test('an earlier model that is away: the rest is found and stored', async t => {
  // Or the members' own vaults would stand in the space of the one that is away.
  await setDefaultEmbeddings(backend, 'local')
  const team = await buildTeam(backend)
  const key = await team.addMember('ann@example.com')
  await setSpaceOfOrg(backend, team.org, 'ollama__two-64')
  await seedTeamMemories(backend, team, [{ text: 'fact number one' }])
  t.same(await spacesIn(team), { [`${local},ollama__two-64`]: 1 })
  provider.fail(503, 100)
  t.equal(await finds(before, key, { query: 'fact number three' }), 1)
  await seedTeamMemories(backend, team, [{ text: 'fact number two' }])
  provider.fail(503, 0)
  t.same(await spacesIn(team), { [`${local},ollama__two-64`]: 1, [local]: 1 })
  await setSpaceOfOrg(backend, team.org, 'nobody_knows-3')
  t.equal(await finds(before, key), 2, 'a space whose model nobody can tell is as good as gone')
})

t.test('a move that failed is tried again an hour later', async t => {
  const team = await buildTeam(backend)
  await seedTeamMemories(backend, team, facts(2))
  await setSpaceOfOrg(backend, team.org, 'elsewhere')
  await backend.mongo.memories.updateMany(
    { vault: { $eq: team.vault } },
    { $rename: { [`vectors.${local}`]: 'vectors.elsewhere' } },
  )
  t.equal(await lookAfter(backend, team), 1)
  const [move] = await movesOf(team)
  await backend.postgres.transaction(tx => failOperations(tx, backend.queue, [move!.id]))
  t.equal(await lookAfter(backend, team), 0)
  await ageRows(backend, 'operations', '61 minutes', { vault: team.vault })
  t.equal(await lookAfter(backend, team), 1)
  t.equal((await movesOf(team)).length, 2)
})

// From here on somebody takes jobs.
t.test('an organization without a search so far, and a worker on its own', async t => {
  const team = await buildTeam(backend)
  const key = await team.addMember('ann@example.com')
  await seedTeamMemories(backend, team, facts(3))
  t.equal(await lookAfter(later, team), 1)
  t.equal(await spaceOf(team), local, 'where it is now')
  t.equal(await finds(after, key), 3)
  await startJobWorkers(later, 'reembed')
  await waitUntil('it has arrived', async () => (await movesOf(team))[0]?.state === 'done')
  t.equal(await spaceOf(team), remote)
  t.equal(await finds(after, key), 3)
  t.same(await spacesIn(team), { [remote]: 3 })
  const org = await findOrg(query, team.account, team.org)
  t.equal(org!.space, remote)
})
