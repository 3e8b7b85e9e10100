import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { mintId } from '#shared/core/ids.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { key: adminKey, memoryKey, email } = await buildAdmin(backend)
const owner = createTestClient(base, memoryKey)
const minted = (await owner.post('/v1/keys', { name: 'of a user' })).body.key as string
const further = (await createTestClient(base, minted).post('/v1/keys')).body.key as string
const { path: orgPath, admin: otherAdmin } = await buildOrg(backend, base)
await otherAdmin.post(`${orgPath}/keys`, { team_member_id: 'ada' })
const { users } = (await otherAdmin.get(`${orgPath}/users`)).body
const standard = await otherAdmin.post(`${orgPath}/users/${users[0].user_id}/memory-key`)

/** Every endpoint that concerns a whole account, with ids that lead nowhere. */
const governed = Object.values(contractDocument.endpoints)
  .filter(({ needs }) => needs.includes('govern'))
  .map(({ method, path }) => ({
    method,
    path: path.replace(':provider', 'groq').replaceAll(/:\w+/g, () => mintId()),
    // Nothing of it is valid: whoever may ask is told so.
    ...(['POST', 'PUT', 'PATCH'].includes(method) && { body: { nonsense: true } }),
  }))

async function statusesFor(client: TestClient): Promise<[string, number][]> {
  const statuses: [string, number][] = []
  for (const { method, path, ...options } of governed) {
    statuses.push([`${method} ${path}`, (await client.send(method, path, options)).status])
  }
  return statuses
}

const refused: Record<string, string> = {
  'minted by a minted key': further,
  'standard key of a user of an organization': standard.body.memory_key,
}

t.test('every route of an account is one that not every key opens', async t => {
  const open = Object.values(contractDocument.endpoints).filter(
    ({ path, needs, auth }) =>
      path.startsWith('/v1/account/') && auth.includes('memory-key') && !needs.includes('govern'),
  )
  t.same(
    open.map(({ path }) => path),
    ['/v1/account/usage'],
  )
  t.ok(governed.length >= 19)
})

for (const [name, key] of Object.entries(refused)) {
  t.test(`403: ${name}`, async t => {
    for (const [route, status] of await statusesFor(createTestClient(base, key))) {
      t.equal(status, 403, route)
    }
  })
}

t.test('the owner key and an admin of the email are let in', async t => {
  for (const client of [owner, createTestClient(base, adminKey)]) {
    for (const [route, status] of await statusesFor(client)) {
      t.ok([200, 400, 404].includes(status), `${route}: ${status}`)
    }
  }
})

t.test('another admin, and the owner of another account, meet their own account', async t => {
  const { memoryKey: foreign } = await buildAdmin(backend)
  await owner.send('PUT', '/v1/account/provider-keys/groq', { body: { key: 'sk-of-the-owner-1' } })
  await insertMemories(backend, memoryKey, [{ text: 'only the owner knows of marmalade' }])
  for (const client of [otherAdmin, createTestClient(base, foreign)]) {
    t.same((await client.get('/v1/account/provider-keys')).body.provider_keys, [])
    const lines = JSON.stringify((await client.get('/v1/account/export')).body)
    t.notOk(lines.includes('marmalade') || lines.includes(email))
    t.equal((await client.post('/v1/account/erase', { email })).status, 400)
    t.equal((await client.send('DELETE', '/v1/account/provider-keys/groq')).status, 404)
  }
  t.equal((await owner.get('/v1/account/provider-keys')).body.provider_keys.length, 1)
})

t.test('403: the key of a user neither takes the account along nor erases it', async t => {
  const user = createTestClient(base, minted)
  const exported = await user.get('/v1/account/export')
  t.match(exported, { status: 403, body: { hint: /made with the account.+admin credential/ } })
  t.equal((await user.post('/v1/account/erase', { email })).status, 403)
  t.equal((await owner.post('/v1/memory/search', { query: 'marmalade', limit: 1 })).status, 200)
})

t.test('200: what a user sees of queued work is that of their own vault', async t => {
  const user = createTestClient(base, minted)
  const told = { messages: [{ role: 'user', content: 'hello there' }], session_id: 'of the owner' }
  const ofOwner = (await owner.post('/v1/memory/ingest', told)).body.operation_id
  const ofUser = (await user.post('/v1/memory/ingest', told)).body.operation_id
  const idsOf = async (client: TestClient): Promise<string[]> =>
    (await client.get('/v1/operations')).body.items.map(
      ({ operation_id }: { operation_id: string }) => operation_id,
    )
  t.same(await idsOf(user), [ofUser])
  t.same(await idsOf(owner), [ofUser, ofOwner])
  t.same(await idsOf(createTestClient(base, `${memoryKey}:read`)), [ofOwner])
  t.same(await idsOf(createTestClient(base, further)), [])

  const path = `/v1/operations/${ofOwner}`
  const unknown = await user.get(`/v1/operations/${mintId()}`)
  t.same((await user.get(path)).body, unknown.body)
  t.equal((await user.send('DELETE', path)).status, 404)
  t.match((await owner.get(path)).body, { state: 'accepted' })
  t.equal((await user.get(`/v1/operations/${ofUser}`)).status, 200)
  t.equal((await owner.send('DELETE', `/v1/operations/${ofUser}`)).status, 200)
})

t.test('what an owner key is rotated into governs, what a minted one is does not', async t => {
  const { memoryKey: mine } = await buildAdmin(backend)
  const spare = (await createTestClient(base, mine).post('/v1/keys')).body.key
  const rotated = async (key: string): Promise<TestClient> =>
    createTestClient(base, (await createTestClient(base, key).post('/v1/keys/rotate')).body.key)
  t.equal((await (await rotated(mine)).get('/v1/account/events')).status, 200)
  t.equal((await (await rotated(spare)).get('/v1/account/events')).status, 403)
})
