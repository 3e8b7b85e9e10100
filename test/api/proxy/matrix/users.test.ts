import t from 'tap'
import { maskKey } from '#shared/access/key.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** For each dialect: a call with the owner's key that names a user is one of that user. */

const { provider, backend, base, owner, ownerKey } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')

const question = 'Where is the cellar key?'
const fact = 'The cellar key hangs behind the clock.'
const openai = proxyDialects[0]!

const keyOf = async (user: string): Promise<string> =>
  ((await owner.post('/v1/keys', { external_id: user })).body as { key: string }).key

const forms: Record<string, (user: string) => { headers?: Record<string, string>; more?: object }> =
  {
    header: user => ({ headers: { 'x-memory-user': user } }),
    body: user => ({ more: { memory_user: user } }),
    both: user => ({ headers: { 'x-memory-user': user }, more: { memory_user: user } }),
  }

for (const dialect of proxyDialects) {
  for (const [form, named] of Object.entries(forms)) {
    t.test(`${dialect.format}: the user of the ${form} is asked about and remembered`, async t => {
      const user = `secret-id-${form}-${dialect.format}`
      const key = await keyOf(user)
      await insertMemories(backend, key, [{ text: fact }])
      const answer = await callModel(base, ownerKey, dialect, question, named(user))
      await answer.text()
      t.equal(answer.status, 200)
      const sent = provider.requests.at(-1)!
      const forwarded = sent.body.toString() + JSON.stringify(sent.headers)
      t.match(forwarded, 'behind the clock')
      t.notMatch(forwarded, user)
      t.notMatch(forwarded, /memory.user/i)
      await waitUntilIdle(backend)
      const texts = (await readDocuments(backend, key)).map(({ text }) => text)
      t.same(texts.toSorted(), [defaultReply, fact, question], 'it is in the vault of the user')
      t.same(await readDocuments(backend, ownerKey), [])
      await backend.usage.flush()
      const { body: usage } = await owner.get('/v1/account/usage', { 'x-memory-user': user })
      t.equal(usage.key, maskKey(key))
      t.equal(Object.keys(usage.by_model as object).length, 1)
      t.match(JSON.parse(answer.headers.get('x-memory-reflection-debt')!), { raw_units: 1 })
    })
  }
}

t.test('400: header and body that differ, and a body that is no id', async t => {
  const asked = provider.requests.length
  const headers = { 'x-memory-user': 'ada' }
  const more = { memory_user: 'bob' }
  const answer = await callModel(base, ownerKey, openai, question, { headers, more })
  t.equal(answer.status, 400)
  t.match(await answer.text(), /different users/)
  for (const memory_user of ['undefined', '', 7, null]) {
    const refused = await callModel(base, ownerKey, openai, question, { more: { memory_user } })
    t.equal(refused.status, 400)
  }
  t.equal(provider.requests.length, asked)
})

t.test('403: the key of a user names no other in the body', async t => {
  const asked = provider.requests.length
  const more = { memory_user: 'bob' }
  t.equal((await callModel(base, await keyOf('ada'), openai, question, { more })).status, 403)
  t.equal(provider.requests.length, asked)
})

t.test('embeddings pass through on the user’s account', async t => {
  const headers = { 'x-memory-user': 'passing' }
  const body = { model: 'openai/text-embedding-3-small', input: 'x' }
  await createTestClient(base, ownerKey).post('/v1/embeddings', body, headers)
  t.notMatch(JSON.stringify(provider.requests.at(-1)!.headers), 'passing')
  await backend.usage.flush()
  t.equal((await owner.get('/v1/account/usage', headers)).body.total_requests, 1)
})
