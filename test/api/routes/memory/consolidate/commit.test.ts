import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import { raiseEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  readUsageEvents,
  checkOut,
  commit,
  buildVault,
  type Vault,
  ingestTexts,
  expireLease,
} from '#test/support/start/consolidation.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { removeDocuments, setBalance } from '#test/support/checks/alter.ts'
import { jobsOf } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, base } = await startService(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })

const newVault = () => buildVault(backend, base)

const entries = [
  { text: 'The user adopted a grey kitten and named her Ada.', importance: 6 },
  { text: 'The user moved from Porto to Lisbon for a new job.', importance: 9 },
]
const said = ['We adopted a kitten', 'She is called Ada', 'I start in Lisbon on Monday']

/** A vault whose three memories are lent. */
async function lentVault(): Promise<Vault & { batch: string; sources: string[] }> {
  const vault = await newVault()
  await ingestTexts(vault, said)
  const { body } = await checkOut(vault)
  return { ...vault, batch: body.batch_id, sources: body.source_ids }
}

const documentsOf = (vault: string, filter: object = {}): Promise<MemoryDocument[]> =>
  backend.mongo.memories
    .find({ vault: { $eq: vault }, ...filter })
    .sort({ _id: 1 })
    .toArray()

const debtOf = async (vault: TestClient) =>
  (await vault.post('/v1/memory/search', { query: 'anything', limit: 1 })).body.reflection
    .unconsolidated

t.test('200: every documented field; the reflections can be searched at once', async t => {
  const vault = await lentVault()
  const tokens = entries.reduce((sum, { text }) => sum + countTokens(text), 0)

  const { status, body } = await commit(vault, vault.batch, entries)
  t.equal(status, 200)
  t.match(body, {
    batch_id: vault.batch,
    committed: true,
    already_committed: false,
    tier: 2,
    created: [{ importance: 6 }, { importance: 9 }],
    sources_consolidated: 3,
    reflection: {
      unconsolidated: {
        raw: { units: 0, est_tokens: 0, importance_equiv: 0 },
        tier2: { count: 2, importance: 15, est_tokens: tokens },
      },
      suggestion: null,
    },
  })
  const found = await vault.post('/v1/memory/search', {
    query: 'Where did the user move?',
    limit: 5,
    tiers: [2],
  })
  t.match(found.body.memories[0], {
    id: body.created[1].id,
    tier: 2,
    content: /Lisbon/,
    importance: 9,
    timestamp: '2024-01-03T09:00:00.000Z',
  })
  t.match(found.body.reflection, body.reflection, 'the debt is the same everywhere')
  t.same(await readUsageEvents(backend, vault.vault, 'commit'), [{ tokens, session: null }])
})

t.test('200: lineage in both directions, over the whole batch', async t => {
  const vault = await lentVault()
  const { body } = await commit(vault, vault.batch, entries)
  const reflections = await documentsOf(vault.vault, { tier: 2 })
  t.same(
    reflections.map(({ _id }) => _id),
    body.created.map(({ id }: { id: string }) => id),
  )
  for (const reflection of reflections) {
    t.match(reflection, {
      batch: vault.batch,
      sources: vault.sources,
      covers: { from: new Date('2024-01-01T09:00:00Z'), to: new Date('2024-01-03T09:00:00Z') },
      consolidated: false,
      session: '',
      role: 'system',
    })
  }
  for (const source of await documentsOf(vault.vault, { tier: 1 })) {
    t.match(source, { consolidated: true, consolidated_by: [vault.batch] })
  }
})

t.test('200: reflections become high-level ones by the same loop', async t => {
  const vault = await lentVault()
  await commit(vault, vault.batch, entries)
  const lent = await checkOut(vault, { tier: 2 })
  t.match(lent.body, {
    count: 2,
    covers: { from: '2024-01-01T09:00:00.000Z', to: '2024-01-03T09:00:00.000Z' },
  })
  const { body } = await commit(vault, lent.body.batch_id, [
    { text: 'The user builds a home wherever life takes them.', importance: 8 },
  ])
  t.match(body, {
    tier: 3,
    created: [{ importance: 8 }],
    sources_consolidated: 2,
    reflection: { unconsolidated: { tier2: { count: 0, importance: 0, est_tokens: 0 } } },
  })
  t.equal((await checkOut(vault, { tier: 2 })).body.batch_id, null)
  const found = await vault.post('/v1/memory/search', { query: 'home', limit: 5, tiers: [3] })
  t.match(found.body.memories, [{ tier: 3, importance: 8 }])
})

t.test('200 again: a replay answers what was created, writes nothing and is free', async t => {
  const vault = await lentVault()
  const first = await commit(vault, vault.batch, entries)
  const again = await commit(vault, vault.batch, [{ text: 'something else', importance: 1 }])
  t.equal(again.status, 200)
  t.same(again.body, { ...first.body, already_committed: true })
  await expireLease(backend, vault.batch)
  t.same((await commit(vault, vault.batch, entries)).body, again.body, 'also long after')
  t.equal((await documentsOf(vault.vault, { tier: 2 })).length, 2)
  t.equal((await readUsageEvents(backend, vault.vault, 'commit')).length, 1)
})

t.test('200: twenty at once commit the batch once', async t => {
  const vault = await lentVault()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      commit(vault, vault.batch, [{ text: `Version ${n}.`, importance: 3 }]),
    ),
  )
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  t.equal(answers.filter(({ body }) => !body.already_committed).length, 1)
  t.equal(new Set(answers.map(({ body }) => body.created[0].id)).size, 1)
  t.equal((await documentsOf(vault.vault, { tier: 2 })).length, 1)
  t.equal((await readUsageEvents(backend, vault.vault, 'commit')).length, 1)
  t.match(await debtOf(vault), { raw: { units: 0 }, tier2: { count: 1, importance: 3 } })
})

t.test('200: what another process has committed is found by the next search', async t => {
  const vault = await lentVault()
  const second = await startTestApi(
    t,
    await createTestBackend(t, { config: backend.config }),
    vault.key,
  )
  await second.post('/v1/memory/search', { query: 'warm', limit: 1 })
  await commit(vault, vault.batch, entries)
  const { body } = await second.post('/v1/memory/search', {
    query: 'grey kitten Ada',
    limit: 3,
    tiers: [2],
  })
  t.match(body.memories[0], { content: /grey kitten/ })
})

t.test('200: sources deleted meanwhile are not missed', async t => {
  const vault = await lentVault()
  await removeDocuments(backend, vault.vault, [vault.sources[1]!])
  const { status, body } = await commit(vault, vault.batch, entries)
  t.equal(status, 200)
  t.equal(body.sources_consolidated, 2)
  t.same((await documentsOf(vault.vault, { tier: 2 }))[0]!.sources, vault.sources)
  t.equal((await commit(vault, vault.batch, entries)).body.sources_consolidated, 2)
})

t.test('200: a text of 8,000 characters is one memory', async t => {
  const vault = await lentVault()
  const text = `${'Ümläut 😀 '.repeat(888)}12345678`
  const { status } = await commit(vault, vault.batch, [{ text, importance: 4 }])
  t.equal(status, 200)
  t.same(
    (await documentsOf(vault.vault, { tier: 2 })).map(document => document.text),
    [text],
  )
})

t.test('200: a batch of one vault space is stored in that space', async t => {
  const vault = await newVault()
  const embeddings = 'ollama/double'
  await vault.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'The boiler was serviced in May' }],
    embeddings,
  })
  const { body } = await checkOut(vault, { tier: 1, embeddings })
  await commit(vault, body.batch_id, [{ text: 'The boiler is serviced each May.', importance: 3 }])
  const question = { query: 'boiler', limit: 3, tiers: [2] }
  const there = await vault.post('/v1/memory/search', question, { 'x-embedding-model': embeddings })
  t.match(there.body.memories, [{ content: /each May/ }])
  t.same((await vault.post('/v1/memory/search', question)).body.memories, [])
})

t.test('502: an embedding model that is down leaves the batch lent', async t => {
  const vault = await newVault()
  const embeddings = 'ollama/double'
  await vault.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'The roof leaks' }],
    embeddings,
  })
  const { body } = await checkOut(vault, { tier: 1, embeddings })
  provider.fail(401, 1)
  t.match(await commit(vault, body.batch_id, entries), {
    status: 502,
    body: { error: /refused \(status 401\)/ },
  })
  t.same(await readUsageEvents(backend, vault.vault, 'commit'), [])
  t.match(await commit(vault, body.batch_id, entries), {
    status: 200,
    body: { already_committed: false },
  })
})

t.test('409: a lease that has run out; its memories are free again', async t => {
  const vault = await lentVault()
  await expireLease(backend, vault.batch)
  t.match(await commit(vault, vault.batch, entries), {
    status: 409,
    body: { error: /run out/, hint: /check out again/ },
  })
  t.same(await documentsOf(vault.vault, { tier: 2 }), [])
  t.same(await readUsageEvents(backend, vault.vault, 'commit'), [])
  const { body } = await checkOut(vault)
  t.same(body.source_ids, vault.sources)
  t.equal((await commit(vault, body.batch_id, entries)).status, 200)
  t.equal((await commit(vault, vault.batch, entries)).status, 409, 'the old ticket stays void')
})

t.test('404: unknown, malformed and foreign batches look alike', async t => {
  const vault = await lentVault()
  const stranger = await newVault()
  const answers = await Promise.all([
    commit(stranger, vault.batch, entries),
    commit(stranger, mintId(), entries),
    commit(stranger, 'a ticket of my own', entries),
  ])
  t.same(
    answers.map(({ status }) => status),
    [404, 404, 404],
  )
  t.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1)
  t.equal((await commit(vault, vault.batch, entries)).status, 200)
})

t.test('404: a batch goes with everything else in the vault', async t => {
  const vault = await lentVault()
  const done = await lentVault()
  await commit(done, done.batch, entries)
  for (const { vault: id } of [vault, done]) {
    await backend.postgres.transaction(tx => raiseEpoch(tx, id))
  }
  t.equal((await commit(vault, vault.batch, entries)).status, 404)
  t.equal((await commit(done, done.batch, entries)).status, 404, 'a replay as well')
  t.equal((await checkOut(vault)).body.batch_id, null)
  t.match(await debtOf(done), { raw: { units: 0 }, tier2: { count: 0 } })
})

t.test('402: without balance nothing is committed, but a replay is free', async t => {
  const vault = await lentVault()
  await setBalance(backend, vault, 0)
  t.match(await commit(vault, vault.batch, entries), { status: 402, body: { error: /balance/ } })
  await setBalance(backend, vault, 1)
  t.equal((await commit(vault, vault.batch, entries)).status, 200)
  t.match(await commit(vault, vault.batch, entries), {
    status: 200,
    body: { already_committed: true },
  })
})

t.test('400: what is wrong is named, and the batch stays lent', async t => {
  const vault = await lentVault()
  const [good] = entries
  const blank = await commit(vault, vault.batch, [good!, { ...good, text: ' \n ' }])
  t.match(blank, { status: 400, body: { error: /entries\[1\]\.text/ } })
  const many = await commit(vault, vault.batch, Array(101).fill(good!))
  t.match(many, { status: 400, body: { error: /entries must have at most 100/ } })
  t.equal((await commit(vault, vault.batch, Array(100).fill(good))).body.created.length, 100)
})

t.test('200: the same Idempotency-Key answers the same, the first time included', async t => {
  const vault = await lentVault()
  const headers = { 'idempotency-key': 'commit-1' }
  const first = await commit(vault, vault.batch, entries, headers)
  t.same((await commit(vault, vault.batch, entries, headers)).body, first.body)
})

t.test('200: nothing of a commit stays in the queue', async t => {
  const vault = await lentVault()
  await commit(vault, vault.batch, entries)
  await waitUntil('the job is done', async () => {
    const jobs = await jobsOf<{ batch: string }>(backend, 'commit-apply')
    return jobs.every(({ data, state }) => data.batch !== vault.batch || state === 'completed')
  })
  t.equal((await documentsOf(vault.vault, { tier: 2 })).length, 2)
})
