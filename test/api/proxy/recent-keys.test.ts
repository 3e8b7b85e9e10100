import t from 'tap'
import type { MemoryKey } from '#api/contract/generated/types.ts'
import { maskKey } from '#shared/access/key.ts'
import { createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findHeader } from '#test/support/doubles/recording-server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { revokeKey } from '#test/support/checks/alter.ts'

/** What this service has looked up within the last second, and how it ends. */

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
provider.respondAlways(respondJson(chatCompletion('Fine.')))
const client = createTestClient(base)

const body = { model: 'openai/gpt-5', messages: [{ role: 'user', content: 'Who?' }] }
const callOff = (key: string) =>
  client.post('/v1/chat/completions', body, { 'x-memory-key': `${key}:off` })
const { owner, newKey } = await createProxyAccount(backend, base)

t.test('a key that is revoked here ends with the answer', async t => {
  const key = await newKey()
  t.equal((await callOff(key)).status, 200)
  const { items } = (await owner.get('/v1/keys')).body as { items: MemoryKey[] }
  const { id } = items.find(row => row.masked_key === maskKey(key))!
  t.equal((await owner.send('DELETE', `/v1/keys/${id}`)).status, 200)
  t.equal((await callOff(key)).status, 401)
})

t.test('a key that another process revokes ends within a second', async t => {
  const key = await newKey()
  t.equal((await callOff(key)).status, 200)
  await revokeKey(backend, key)
  const revokedAt = performance.now()
  let admittedAt = revokedAt
  await waitUntil('it is refused', async () => {
    const begun = performance.now()
    const { status } = await callOff(key)
    if (status === 200) admittedAt = begun
    return status === 401
  })
  t.ok(admittedAt - revokedAt < 1_000, `admitted ${admittedAt - revokedAt} ms later`)
})

t.test('a call that uses memory by its body alone is checked as it is now', async t => {
  const key = await newKey()
  t.equal((await callOff(key)).status, 200)
  await revokeKey(backend, key)
  const { status } = await client.post('/v1/chat/completions', body, { 'x-memory-key': key })
  t.equal(status, 401)
})

t.test('a provider key that is replaced or deleted here is not sent any more', async t => {
  const key = await newKey()
  await callOff(key)
  const path = '/v1/account/provider-keys/openai'
  await owner.send('PUT', path, { body: { key: 'sk-the-new-one-0123456789' } })
  await callOff(key)
  const sent = findHeader(provider.requests.at(-1)!.headers, 'authorization')
  t.equal(sent, 'Bearer sk-the-new-one-0123456789')
  await owner.send('DELETE', path)
  t.equal((await callOff(key)).status, 401)
})
