import t from 'tap'
import { acceptDeletion, executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { releaseSources } from '#shared/vault/delete/release-sources.mongo.ts'
import { mintId } from '#shared/core/ids.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { checkOut, commit, ingestTexts } from '#test/support/start/consolidation.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

const backend = await createTestBackend(t)
// Deletions are made by requests, and by hand.
await startJobWorkers(backend, 'ingest', 'clear')
const { base } = await startTestApi(t, backend)

async function fresh(texts: readonly string[]) {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await ingestTexts(client, texts)
  return { key, client }
}

const texts = ['the boiler was serviced', 'the roof was mended', 'the cat had kittens']

let reflections = 0

/** Consolidates all that waits at a tier into so many reflections. @returns their ids. */
async function reflect(client: TestClient, count: number, tier = 1): Promise<string[]> {
  const { body: batch } = await checkOut(client, { tier })
  const entries = Array.from({ length: count }, (_, n) => ({
    text: `What happened of tier ${tier}, number ${n}, ${++reflections} in all`,
    importance: 5,
  }))
  const { body } = await commit(client, batch.batch_id, entries)
  return body.created.map(({ id }: { id: string }) => id)
}

const forget = async (client: TestClient, ids: readonly string[]) =>
  (await client.post('/v1/memory/delete-ids', { ids })).body

const debtOf = async (client: TestClient) => {
  const { body } = await client.post('/v1/memory/prepare', {
    messages: [{ role: 'user', content: 'hello' }],
  })
  const { raw, tier2 } = body.reflection.unconsolidated
  return { raw: raw.units, rawTokens: raw.est_tokens, tier2: tier2.count }
}

const rawIds = async (client: TestClient): Promise<string[]> =>
  (await client.get('/v1/memory/list?tier=1')).body.items.map(
    ({ memory_id }: { memory_id: string }) => memory_id,
  )

t.test('the last reflection of a batch gives its sources back, and not an earlier one', async t => {
  const { client } = await fresh(texts)
  const before = await debtOf(client)
  t.match(before, { raw: 3, tier2: 0 })
  const [one, two] = await reflect(client, 2)
  t.match(await debtOf(client), { raw: 0, rawTokens: 0, tier2: 2 })

  await forget(client, [one!])
  t.match(await debtOf(client), { raw: 0, tier2: 1 }, 'another reflection covers them')
  t.equal((await checkOut(client)).body.batch_id, null)

  await forget(client, [two!])
  t.same(await debtOf(client), before)
  const { body: listed } = await client.get('/v1/memory/list?tier=1')
  for (const { consolidated } of listed.items) t.equal(consolidated, false)
  const [id] = await rawIds(client)
  const { body: seen } = await client.post('/v1/memory/inspect', { memory_id: id })
  t.same(seen.consolidated_into, [])
  const [again] = await reflect(client, 1)
  t.match(await debtOf(client), { raw: 0, rawTokens: 0, tier2: 1 })
  const { body: lineage } = await client.post('/v1/memory/inspect', { memory_id: again })
  t.match(lineage, { sources_total: 3, sources_deleted: 0 })
})

t.test('tier 3 gives tier 2 back; tier 2 below it gives the raw memories back', async t => {
  const { client } = await fresh(texts)
  const before = await debtOf(client)
  const reflections = await reflect(client, 2)
  const [high] = await reflect(client, 1, 2)
  t.match(await debtOf(client), { raw: 0, tier2: 0 })
  await forget(client, [high!])
  t.match(await debtOf(client), { raw: 0, tier2: 2 })
  const [another] = await reflect(client, 1, 2)
  await forget(client, reflections)
  t.same(await debtOf(client), before, 'covered reflections gave back what they had covered')
  await forget(client, [another!])
  t.same(await debtOf(client), before, 'their own sources are gone')
})

t.test('sources that go with their reflection do not come back', async t => {
  const { client } = await fresh(texts)
  const [reflection] = await reflect(client, 1)
  const [first, ...others] = await rawIds(client)
  await forget(client, [first!, reflection!])
  t.match(await debtOf(client), { raw: 2, tier2: 0 })
  await forget(client, others)
  t.match(await debtOf(client), { raw: 0, rawTokens: 0, tier2: 0 })
})

t.test('a crash in between: run again, deletions meanwhile, and the debt is right', async t => {
  const { key, client } = await fresh(texts)
  const before = await debtOf(client)
  const [reflection] = await reflect(client, 1)
  const caller = await resolveCaller(backend, key)
  const operation = mintId()
  const job = (await acceptDeletion(backend, caller, { operation, ids: [reflection!] }))!
  // The process dies before the deletion is finalized: its writes to MongoDB are there.
  const dying = {
    ...backend,
    postgres: {
      ...backend.postgres,
      query: backend.postgres.query,
      transaction: async (run: Parameters<typeof backend.postgres.transaction>[0]) => {
        await backend.postgres.transaction(run)
        throw new Error('killed after its first transaction')
      },
    },
  } as typeof backend
  await t.rejects(executeDeletion(dying, job), /killed/)
  await releaseSources(backend.mongo, job)
  const [gone] = await rawIds(client)
  await forget(client, [gone!])
  await executeDeletion(backend, job)
  await executeDeletion(backend, job)
  const after = await debtOf(client)
  t.match(after, { raw: before.raw - 1, tier2: 0 })
  await forget(client, await rawIds(client))
  t.match(await debtOf(client), { raw: 0, rawTokens: 0, tier2: 0 }, 'to the token')
  const left = await backend.mongo.memories.countDocuments({
    vault: caller.scope.vault,
    released_by: { $exists: true },
  })
  t.equal(left, 0, 'no mark is left')
})

t.test('a clearing of a session leaves the core as it is', async t => {
  const { client } = await fresh(texts)
  await ingestTexts(client, ['in a session'], { session: 's' })
  await reflect(client, 1)
  await client.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 's' } })
  t.match(await debtOf(client), { raw: 0, tier2: 1 })
})
