import t from 'tap'
import type { Test } from 'tap'
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { jobNames } from '#shared/domain/jobs.ts'
import { resolveDefaultEmbeddingModel } from '#shared/vault/reembed/default-embedding-model.ts'
import { createLog } from '#shared/core/log.ts'
import { reembedLateArrivals } from '#shared/vault/reembed/reembed.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { setDefaultEmbeddings } from '#test/support/checks/alter.ts'

const small = 'openai/text-embedding-3-small'
const provider = await startEmbeddingProvider(t)
const keyed = { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: provider.baseUrl }
const plain = await createTestConfig(t)

/** The configuration of the same databases in another environment. */
const configIn = (env: Record<string, string>, of = plain) =>
  readConfig({
    DATABASE_URL: of.databaseUrl,
    MONGODB_URI: of.mongodbUri,
    MASTER_KEY: '11'.repeat(32),
    KEY_PEPPER: of.keyPepper,
    LOG_LEVEL: 'silent',
    RATE_LIMITS: 'off',
    // A machine that is busy with other tests can stand still for longer than the 1.5 s of the service.
    RECALL_TIMEOUT_MS: '20000',
    ...env,
  })

const backend = await createTestBackend(t, { config: plain })
/** The next starts of the same service. */
const withKey = await createTestBackend(t, { config: configIn(keyed) })
const bases = new Map<Backend, string>()
for (const one of [backend, withKey]) bases.set(one, (await startTestApi(t, one)).base)
// Without the sweep, which the tests run themselves and count.
await startJobWorkers(withKey, ...jobNames.filter(name => name !== 'sweep'))

const as = (one: Backend, key: string) => createTestClient(bases.get(one)!, key)
const tell = async (one: Backend, key: string, content: string) => {
  const messages = [{ role: 'user', content }]
  const answer = await as(one, key).post('/v1/memory/ingest?wait=true', { messages })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.error}`)
}
const found = async (one: Backend, key: string, body = {}): Promise<string[]> => {
  const asked = { query: 'the violin', limit: 50, ...body }
  const { body: answer } = await as(one, key).post('/v1/memory/search', asked)
  return answer.memories.map(({ content }: { content: string }) => content).toSorted()
}
const spacesOf = async (key: string) => {
  const documents = await readDocuments(backend, key)
  return Object.fromEntries(documents.map(({ text, vectors }) => [text, Object.keys(vectors)]))
}
const modelOf = async (key: string) => (await resolveCaller(backend, key)).keyRow.embeddingModel

/** Another start of the service. */
async function restarted(test: Test, env: Record<string, string>): Promise<Backend> {
  const again = await createTestBackend(test, { config: configIn(env) })
  bases.set(again, (await startTestApi(test, again)).base)
  return again
}

/** What a start says to its operator. */
async function saidAtStart(env: Record<string, string>) {
  const said: [object, string][] = []
  const log = { warn: (fields: object, event: string) => said.push([fields, event]) }
  await resolveDefaultEmbeddingModel(backend.postgres, configIn(env), log as never)
  return said
}

t.test('a provider key that comes into the environment changes no vault', async t => {
  const key = await buildKey(backend)
  await tell(backend, key, 'the violin of last year')
  t.equal(withKey.embedders.defaultModel, 'local')
  t.same(await found(withKey, key), ['the violin of last year'])
  const asked = { messages: [{ role: 'user', content: 'what about the violin?' }] }
  const prepared = await as(withKey, key).post('/v1/memory/prepare', asked)
  t.match(prepared.body.context, 'the violin of last year')
  const destination_key = await buildKey(withKey)
  const dry = { destination_key, dry_run: true }
  t.match((await as(withKey, key).post('/v1/memory/transfer', dry)).body, { count: 1 })
  const lent = await as(withKey, key).post('/v1/memory/consolidate/checkout', { tier: 1 })
  t.match(lent.body, { count: 1 })
  await tell(withKey, key, 'the violin of today')
  t.same(await found(backend, key), ['the violin of last year', 'the violin of today'])

  const said = await saidAtStart(keyed)
  t.match(said, [[{ embeddings: 'local', environment: small, hint: /^Vaults stay with local/ }]])
  t.same(await saidAtStart({}), [])
  const opened = await openBackend(configIn({}), createLog('silent', 'test'), 'web')
  t.equal(opened.config.embeddingModel, 'local')
  await opened.close()
})

t.test('of many first starts with different models one decides', async t => {
  const { postgres } = backend
  await postgres.query(`delete from settings where name = 'embeddings'`)
  await postgres.query('update vaults set embeddings = null')
  const key = await buildKey(backend)
  t.equal(await modelOf(key), null, 'of before the first start')
  const starts = Array.from({ length: 12 }, (_, n) =>
    resolveDefaultEmbeddingModel(postgres, configIn(n % 2 === 0 ? {} : keyed), null),
  )
  const models = new Set((await Promise.all(starts)).map(({ model }) => model))
  t.equal(models.size, 1)
  t.equal(await modelOf(key), [...models][0])
  await setDefaultEmbeddings(backend, 'local')
  await postgres.query(`update vaults set embeddings = 'local'`)
})

t.test('unavailable: a process that is ahead of its release step says so', async t => {
  const { postgres } = backend
  await postgres.query('alter table settings rename to no_settings')
  const early = resolveDefaultEmbeddingModel(postgres, configIn({}), null)
  await t.rejects(early, { message: /this version yet/, reason: 'unavailable' })
  await postgres.query('alter table no_settings rename to settings')
})

t.test('EMBEDDINGS decides what new vaults get; vaults with memories stay', async t => {
  const used = await buildKey(backend)
  const empty = await buildKey(backend)
  await tell(backend, used, 'the violin of the first model')
  const chosen = { ...keyed, EMBEDDINGS: small }
  const later = await restarted(t, chosen)
  t.equal(later.embedders.defaultModel, small)
  t.match(await saidAtStart(chosen), [
    [{ elsewhere: [{ model: 'local', vaults: Number }], hint: /reembed/ }, /vaults-elsewhere/],
  ])
  t.equal((await restarted(t, keyed)).embedders.defaultModel, small, 'from then on')

  t.equal(await modelOf(used), 'local')
  t.equal(await modelOf(empty), small, 'nothing was stored in it')
  t.equal(await modelOf(await buildKey(backend)), small, 'whoever makes it')
  await tell(later, used, 'the violin after the change')
  await tell(withKey, empty, 'the violin in an empty vault')
  for (const one of [withKey, later]) {
    const both = ['the violin after the change', 'the violin of the first model']
    t.same(await found(one, used), both)
    t.same(await found(one, empty), ['the violin in an empty vault'])
    t.same(await found(one, used, { embeddings: small }), [], 'by name each space is its own')
  }
  const span = { from: '2020-01-01', max_tokens: 10_000 }
  const told = await as(later, used).post('/v1/memory/date-search', span)
  t.equal(told.body.count, 2)

  t.equal((await as(later, used).post('/v1/memory/reembed', { embeddings: small })).status, 200)
  t.equal(await modelOf(used), small)
  await tell(later, used, 'the violin at home')
  t.equal((await found(later, used)).length, 3)
  t.same((await spacesOf(used))['the violin at home'], ['openai__text-embedding-3-small-64'])

  await as(later, empty).send('DELETE', '/v1/memory')
  t.equal(await modelOf(empty), small)
  await as(later, used).post('/v1/memory/reembed', { embeddings: 'local' })
  t.equal(await modelOf(used), 'local')
  await as(later, used).send('DELETE', '/v1/memory?reset=true')
  t.equal(await modelOf(used), small, 'a vault that is reset is as new')
})

t.test('200: copies stand where their destination stands', async t => {
  const source = await buildKey(withKey)
  const destination_key = await buildKey(withKey)
  const later = await restarted(t, keyed)
  await backend.postgres.query('update vaults set embeddings = $1 where id = $2', [
    'local',
    (await resolveCaller(backend, source)).scope.vault,
  ])
  await tell(later, source, 'the violin that is copied')
  const copies = { destination_key, queries: ['the violin'], threshold: 0 }
  t.match(await as(later, source).post('/v1/memory/graft', copies), { body: { copied: 1 } })
  t.same(await found(later, destination_key), ['the violin that is copied'])
  const again = await as(later, source).post('/v1/memory/transfer', { destination_key })
  t.match(again, { status: 200, body: { copied: 0, deduped_or_skipped: 1 } })
})

t.test('what is stored in the space a vault has left is brought along', async t => {
  const key = await buildKey(backend)
  const later = await restarted(t, keyed)
  const { scope } = await resolveCaller(backend, key)
  const { query } = backend.postgres
  await tell(later, key, 'the violin before')
  await as(later, key).post('/v1/memory/reembed', { embeddings: 'local' })
  // A file that was on its way, as it were.
  const messages = [{ role: 'user', content: 'the violin that came late' }]
  await as(later, key).post('/v1/memory/ingest?wait=true', { messages, embeddings: small })
  t.same(await found(later, key), ['the violin before'])
  t.equal(await reembedLateArrivals(later), 0, 'not at once')

  const age = (minutes: number) =>
    query(
      `update vaults set look_at = now(), moved_at = now() - make_interval(mins => $2) where id = $1`,
      [scope.vault, minutes],
    )
  await query('update vaults set look_at = null where id <> $1', [scope.vault])
  await age(2)
  t.match(await sweepAll(later), { movedVaults: 1 })
  const nextLook = async () =>
    (
      await query<{ minutes: number | null }>(
        'select round(extract(epoch from look_at - moved_at) / 60)::int minutes from vaults where id = $1',
        [scope.vault],
      )
    ).rows[0]!.minutes
  t.equal(await nextLook(), 20)
  const both = ['the violin before', 'the violin that came late']
  await waitUntil('both are found', async () => (await found(later, key)).length === 2)
  t.same(await found(later, key), both)
  await age(1_500)
  t.equal(await reembedLateArrivals(later), 0, 'nothing is left behind')
  t.equal(await nextLook(), null, 'after a day nobody looks any more')
})

t.test('502: a model that was taken away is missed aloud, and comes back', async t => {
  const key = await buildKey(backend)
  const before = await restarted(t, keyed)
  await tell(before, key, 'the violin of the model')
  t.equal(await modelOf(key), small)
  const without = await restarted(t, { EMBEDDINGS: 'local' })
  const asked = { query: 'the violin', limit: 5 }
  const refused = await as(without, key).post('/v1/memory/search', asked)
  t.match(refused, {
    status: 502,
    body: { error: /memories stand in its space/, hint: /OPENAI_API_KEY.*reembed/ },
  })
  const unknown = { ...asked, embeddings: 'mistral/unused' }
  t.equal((await as(without, key).post('/v1/memory/search', unknown)).status, 400)

  const { body } = await as(without, key).get('/v1/memory/list')
  const id = body.items[0].memory_id
  const edit = { memory_id: id, text: 'the viola' }
  const edited = await as(without, key).post('/v1/memory/edit', edit)
  t.equal(edited.status, 200, 'a space that nobody can embed into holds up no edit')
  t.equal((await as(without, key).post('/v1/memory/reembed', { embeddings: 'local' })).status, 200)
  t.same(await found(without, key), ['the viola'])
})
