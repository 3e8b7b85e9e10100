import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { TestClient } from '#test/support/start/api.ts'
import { setBalance } from '#test/support/checks/alter.ts'
import { checkOut, commit, ingestTexts } from '#test/support/start/consolidation.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { billedEventsOfVault } from '#test/support/checks/observe.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

/* `dry_run` of delete-ids: what would go, and what would follow. */

const { backend, newClient } = await startService(t)

const preview = (client: TestClient, ids: readonly unknown[]) =>
  client.post('/v1/memory/delete-ids', { ids, dry_run: true })

const remove = (client: TestClient, ids: readonly unknown[]) =>
  client.post('/v1/memory/delete-ids', { ids })

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

const idsOf = async (client: TestClient, tier: number): Promise<string[]> =>
  (await client.get(`/v1/memory/list?tier=${tier}`)).body.items.map(
    ({ memory_id }: { memory_id: string }) => memory_id,
  )

/** How many memories of tiers 1 and 2 no reflection covers. */
async function uncovered(client: TestClient): Promise<number> {
  const { body } = await client.post('/v1/memory/search', { query: 'anything', limit: 1 })
  const { raw, tier2 } = body.reflection.unconsolidated
  return raw.units + tier2.count
}

t.test('200: it counts what a deletion then does, and changes nothing', async t => {
  const { key, ...client } = await newClient()
  const ids = await insertMemories(
    backend,
    key,
    ['a grey kitten', 'a brown kitten', 'a dog'].map(text => ({ text })),
  )
  const unknown = mintId()
  const before = await readDocuments(backend, key)
  const asked = [ids[1], ids[0]!.toUpperCase(), ids[0], unknown]
  const { status, body } = await preview(client, asked)
  t.equal(status, 200)
  t.same(await readDocuments(backend, key), before)
  const rows = before.filter(({ _id }) => ids.slice(0, 2).includes(_id))
  t.same(body, {
    dry_run: true,
    requested: 3,
    count: 2,
    ids: [ids[1], ids[0]],
    not_found: 1,
    estimated_tokens: rows.reduce((sum, { tokens }) => sum + tokens, 0),
    sources_released: 0,
    reflections_left: 0,
  })
  const { vault } = await readVaultScope(backend, key)
  t.same(await billedEventsOfVault(backend, vault), [], 'it bills nothing')
  t.same((await client.get('/v1/operations')).body.items, [], 'it is no operation')
  const done = (await remove(client, asked)).body
  t.match(done, { requested: 3, deleted: body.count, not_found: body.not_found })
  const [bill] = await billedEventsOfVault(backend, vault)
  t.match(bill, { kind: 'delete-ids' })
  t.match((await preview(client, asked)).body, { count: 0, ids: [], not_found: 3 })
})

t.test('200: sources that would be released, and reflections that would have a gap', async t => {
  const client = await newClient()
  await ingestTexts(client, [
    'the boiler was serviced',
    'the roof was mended',
    'the cat had kittens',
  ])
  const raw = await idsOf(client, 1)
  const [one, two] = await reflect(client, 2)
  const [high] = await reflect(client, 1, 2)
  const cases: [what: string, ids: string[], released: number, left: number][] = [
    ['one of two reflections of a batch', [one!], 0, 1],
    ['both of them', [one!, two!], 3, 1],
    ['both, with a source', [one!, two!, raw[0]!], 2, 1],
    ['a source alone', [raw[0]!], 0, 2],
    ['the reflection above', [high!], 2, 0],
    ['all reflections', [one!, two!, high!], 3, 0],
    ['the reflection above and one below', [high!, one!], 1, 0],
  ]
  for (const [what, ids, sources_released, reflections_left] of cases) {
    const { body } = await preview(client, ids)
    t.match(body, { count: ids.length, sources_released, reflections_left }, what)
  }
  t.equal(await uncovered(client), 0)
  const last = await preview(client, [high!, one!, two!])
  await remove(client, [high!, one!, two!])
  t.equal(await uncovered(client), last.body.sources_released, 'as many as were released')
})

t.test('200: memories of sessions count, but not those before the session was cleared', async t => {
  const { key, ...client } = await newClient()
  const [kept] = await insertMemories(backend, key, [{ text: 'a trip' }], { session: 'kept' })
  const [gone] = await insertMemories(backend, key, [{ text: 'a walk' }], { session: 'gone' })
  await client.send('DELETE', '/v1/memory', {
    headers: { 'x-session-id': 'gone', prefer: 'respond-async' },
  })
  t.match((await preview(client, [kept, gone])).body, { count: 1, ids: [kept], not_found: 1 })
})

t.test('200: by metadata, with the ids to delete', async t => {
  const client = await newClient()
  for (const run_id of ['r-7', 'r-7', 'r-8']) {
    await client.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: `It belongs to run ${run_id}` }],
      metadata: { run_id },
    })
  }
  const metadata = { run_id: 'r-7' }
  const { status, body } = await client.post('/v1/memory/delete-ids', { metadata, dry_run: true })
  t.match({ status, body }, { status: 200, body: { count: 2, has_more: false } })
  t.equal((await idsOf(client, 1)).length, 3)
  t.match((await remove(client, body.ids)).body, { deleted: 2 })
  const prefer = { prefer: 'respond-async' }
  const later = await client.post('/v1/memory/delete-ids', { metadata }, prefer)
  t.match(later, { status: 202, body: { status: 'processing' } })
})

t.test('200: of another vault nothing is found', async t => {
  const { key } = await newClient()
  const ids = await insertMemories(backend, key, [{ text: 'said by another' }])
  const client = await newClient()
  t.match((await preview(client, ids)).body, { count: 0, not_found: 1, estimated_tokens: 0 })
})

t.test('dry_run works in body and query alike, and never deletes by mistake', async t => {
  const { key, ...client } = await newClient()
  const ids = await insertMemories(backend, key, [{ text: 'still there' }])
  const send = (query: string, dry_run?: unknown) =>
    client.post(`/v1/memory/delete-ids${query}`, { ids, dry_run })
  for (const [query, inBody, status] of [
    ['?dry_run=true', undefined, 200],
    ['?dry_run=1', undefined, 200],
    ['?dry_run=true', null, 200],
    ['?dry_run=true', true, 200],
    ['?dry_run=true', false, 400],
    ['?dry_run=false', true, 400],
    ['', 'true', 400],
    ['', 1, 400],
    ['?dry_run=yes', undefined, 400],
    ['?dryrun=true', undefined, 400],
  ] as const) {
    const answer = await send(query, inBody)
    t.equal(answer.status, status, `${query} ${inBody}`)
    if (status === 200) t.match(answer.body, { dry_run: true, count: 1 })
  }
  t.equal((await idsOf(client, 1)).length, 1)
  t.match((await send('?dry_run=false')).body, { deleted: 1 })
})

t.test('an exhausted balance keeps no one from it', async t => {
  const { key, ...client } = await newClient()
  const ids = await insertMemories(backend, key, [{ text: 'still there' }])
  const { vault } = await readVaultScope(backend, key)
  await setBalance(backend, { vault }, 0)
  t.match(await preview(client, ids), { status: 200, body: { count: 1 } })
})
