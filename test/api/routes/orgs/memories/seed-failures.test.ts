import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, base } = await startService(t, {
  env: { EMBEDDINGS: 'openai/test', OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'k' },
  jobs: [],
})
const team = await buildTeam(backend)
const admin = createTestClient(base, team.adminKey)
const path = `/v1/orgs/${team.org}/memories`
await backend.embedders.get()

const listed = async (): Promise<string[]> =>
  (await admin.get(path)).body.items.map(({ text }: { text: string }) => text)

t.test('502: a seed that cannot be embedded leaves nothing', async t => {
  provider.fail(400, 1)
  t.equal((await admin.post(path, { text: 'alone' })).status, 502)
  t.same(await listed(), [])
  t.equal((await admin.get(`/v1/orgs/${team.org}/audit`)).body.count, 0)
})

t.test('201: one of several that cannot be embedded is told, the others are stored', async t => {
  // The whole batch, then its first half, then the first text of that half.
  provider.fail(400, 3)
  const items = ['one', 'two', 'three', 'four'].map(text => ({ text }))
  const { status, body } = await admin.post(path, { items })
  t.equal(status, 201)
  t.match(body, { created: 3, failed: 1, errors: [{ index: 0, error: String }] })
  t.same((await listed()).toSorted(), ['four', 'three', 'two'])
})

t.test('201: one of several that holds no words is told; 400 when none holds any', async t => {
  const before = (await listed()).length
  const items = [{ text: '   ' }, { text: 'five' }, { text: '\n\t\u00A0' }]
  const { status, body } = await admin.post(path, { items })
  t.equal(status, 201)
  t.match(body, {
    created: 1,
    failed: 2,
    errors: [
      { index: 0, error: 'text holds no words' },
      { index: 2, error: 'text holds no words' },
    ],
  })
  t.match(await admin.post(path, { items: [items[0]] }), { status: 400 })
  t.match(await admin.post(path, { text: ' ' }), { status: 400 })
  t.equal((await listed()).length, before + 1)
})

t.test('502: a PATCH whose text cannot be embedded changes nothing', async t => {
  const { body } = await admin.post(path, { text: 'stays', tags: ['a'] })
  provider.fail(400, 1)
  const change = { text: 'goes', tags: ['b'] }
  t.equal((await admin.send('PATCH', `${path}/${body.mem_id}`, { body: change })).status, 502)
  t.ok((await listed()).includes('stays'))
})
