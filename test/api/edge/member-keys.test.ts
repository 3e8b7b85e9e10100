import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestAnswer,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

// What the key of a member reaches, and what it does not, over every way in.
const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const { base: there } = await startTestApi(
  t,
  await createTestBackend(t, { config: backend.config }),
)
await startJobWorkers(
  backend,
  'ingest',
  'delete-ids',
  'copy-chunk',
  'clear',
  'commit-apply',
  'reembed',
)

const { admin, path, org, orgKey, email } = await buildOrg(backend, base)
const { body: role } = await admin.post(`${path}/roles`, { name: 'Money', allowed_tags: ['money'] })
const memberKey = async (name: string, role_ids: string[] = []): Promise<string> => {
  await admin.post(`${path}/role-assignments`, { team_member_id: name, role_ids })
  return (await admin.post(`${path}/keys`, { team_member_id: name })).body.key_id
}
const annKey = await memberKey('ann', [role.role_id])
const [ann, bob] = [createTestClient(base, annKey), createTestClient(base, await memberKey('bob'))]
const { body: seeded } = await admin.post(`${path}/memories`, {
  items: [
    { text: 'the canary budget of the launch is seven', tags: ['money'] },
    { text: 'the canary day of the launch is Monday', tags: [] },
    { text: 'the canary salary at the launch is nine', tags: ['people'] },
  ],
})
const ids = seeded.items.map((row: { mem_id: string }) => row.mem_id)
const [money, open, people] = ids
const shared = async (): Promise<unknown> => (await admin.get(`${path}/memories`)).body.items
const before = await shared()

const found = ({ body }: TestAnswer): string[] =>
  body.memories.map((row: { id: string }) => row.id).toSorted()
const asked = { query: 'the canary of the launch', limit: 10 }

t.test('the shared memory is asked, and never listed, taken along or changed', async t => {
  await ann.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'my walrus at the launch' }],
  })
  t.match(await ann.get('/v1/memory/list'), { body: { items: [{ text: /walrus/ }] } })
  const elsewhere = await buildKey(backend)
  const copy = { destination_key: elsewhere, queries: ['launch'], threshold: 0 }
  const { destination_key } = copy
  const requests: [string, string, object?][] = [
    ['GET', '/v1/memory/list?search=canary'],
    ['GET', '/v1/memory/list?limit=200'],
    ['GET', '/v1/memory/export?sessions=true&vectors=true'],
    ['GET', '/v1/memory/stats'],
    ['POST', '/v1/memory/transfer', { destination_key, dry_run: true }],
    ['POST', '/v1/memory/transfer', { destination_key }],
    ['POST', '/v1/memory/graft', { ...copy, dry_run: true }],
    ['POST', '/v1/memory/graft', copy],
    ['POST', '/v1/memory/consolidate/checkout', { tier: 1 }],
    ['POST', '/v1/memory/reembed', { embeddings: 'local' }],
    ['GET', '/v1/operations'],
    ['GET', '/v1/account/usage'],
    ...ids.flatMap((id: string): [string, string, object][] => [
      ['POST', '/v1/memory/edit', { memory_id: id, text: 'mine now' }],
      ['POST', '/v1/memory/inspect', { memory_id: id }],
    ]),
    ['POST', '/v1/memory/delete-ids', { ids }],
    ['DELETE', '/v1/memory'],
    ['DELETE', '/v1/memory?reset=true'],
  ]
  for (const [method, route, body] of requests) {
    const answer = await ann.send(method, route, body ? { body } : {})
    const what = `${answer.status} ${method} ${route}`
    t.ok([200, 404].includes(answer.status), what)
    t.notMatch(JSON.stringify(answer.body), /canary/, what)
    if (/edit|inspect/.test(route)) t.equal(answer.status, 404, what)
  }
  t.match(await ann.get('/v1/memory/stats'), { body: { memories: 0 } })
  t.same(
    (await createTestClient(base, elsewhere).get('/v1/memory/list?search=canary')).body.items,
    [],
  )
  t.strictSame(await shared(), before, 'and all of it is as it was')
  t.strictSame(found(await ann.post('/v1/memory/search', asked)), [money, open].toSorted())
  for (const query of [undefined, 'launch']) {
    const dated = await ann.post('/v1/memory/date-search', { from: '2000-01-01', query })
    t.strictSame(found(dated), [money, open].toSorted())
  }
})

t.test('401, 403: nothing of the account or of the organization', async t => {
  const requests: [number, string, string, object?][] = [
    [403, 'POST', '/v1/keys', {}],
    [403, 'POST', '/v1/keys/rotate', {}],
    [403, 'GET', '/v1/account/provider-keys'],
    [403, 'PUT', '/v1/account/provider-keys/openai', { key: 'sk-0123456789' }],
    [403, 'DELETE', '/v1/account/provider-keys/openai'],
    [401, 'GET', '/v1/account/admin-keys'],
    [401, 'POST', '/v1/account/admin-keys', {}],
    [401, 'GET', '/v1/orgs'],
    [401, 'DELETE', path],
    [401, 'GET', `${path}/memories`],
    [401, 'GET', `${path}/nothing/of/the/kind`],
  ]
  for (const key of [annKey, orgKey, `${annKey}:read`]) {
    for (const [status, method, route, body] of requests) {
      const answer = await createTestClient(base, key).send(method, route, {
        ...(body && { body }),
        headers: { 'x-admin-email': email },
      })
      t.equal(answer.status, status, `${method} ${route}`)
    }
  }
})

t.test('an answer that was kept goes with the right to see it, on every process', async t => {
  const again = { 'idempotency-key': 'the same' }
  const [here, elsewhere] = [base, there].map(url => createTestClient(url, annKey))
  const answers = () =>
    Promise.all([here!, elsewhere!].map(client => client.post('/v1/memory/search', asked, again)))
  const first = await here!.post('/v1/memory/search', asked, again)
  t.strictSame(found(first), [money, open].toSorted())
  for (const answer of await answers()) t.strictSame(answer.body, first.body)
  await admin.send('PATCH', `${path}/roles/${role.role_id}`, { body: { allowed_tags: [] } })
  t.strictSame(found(await elsewhere!.post('/v1/memory/search', asked, again)), [open])
  t.strictSame(found(await here!.post('/v1/memory/search', asked, again)), [open])
  await admin.send('PATCH', `${path}/roles/${role.role_id}`, { body: { allowed_tags: ['money'] } })
  t.strictSame(found(await here!.post('/v1/memory/search', asked, again)), [money, open].toSorted())
  await admin.post(`${path}/role-assignments`, { team_member_id: 'ann', role_ids: [] })
  t.strictSame(found(await here!.post('/v1/memory/search', asked, again)), [open])
  await admin.post(`${path}/role-assignments`, { team_member_id: 'ann', role_ids: [role.role_id] })
})

t.test('400: the key of an organization is nowhere to copy to', async t => {
  await bob.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'bob keeps an otter' }],
  })
  for (const dry_run of [true, false]) {
    const answer = await bob.post('/v1/memory/transfer', { destination_key: orgKey, dry_run })
    t.match(answer, { status: 400, body: { error: /destination_key/ } })
  }
  const nobody = createTestClient(base, orgKey)
  t.strictSame(found(await nobody.post('/v1/memory/search', asked)), [open])
  t.match(await nobody.post('/v1/memory/delete-ids', { ids: [] }), { status: 403 })
  t.match(await bob.post('/v1/memory/transfer', { destination_key: annKey }), {
    status: 200,
    body: { copied: 1 },
  })
  const otter = { ...asked, query: 'otter' }
  t.match((await ann.post('/v1/memory/search', otter)).body.memories, [{ source: 'core' }])
  t.notMatch(JSON.stringify((await nobody.post('/v1/memory/search', otter)).body.memories), /otter/)
})

t.test('a member asks over MCP as over HTTP', async t => {
  const client = await connectMcp(t, base, annKey)
  const use = async (name: string, args: Record<string, unknown>) =>
    await client.callTool({ name, arguments: args })
  const { structuredContent: hits } = await use('search', asked)
  const { memories } = hits as { memories: { id: string; source: string }[] }
  const ofTeam = memories.filter(({ source }) => source === 'org').map(({ id }) => id)
  t.strictSame(ofTeam.toSorted(), [money, open].toSorted())
  t.notMatch(JSON.stringify(hits), people)
  t.match(await use('prepare', { messages: [{ role: 'user', content: asked.query }] }), {
    structuredContent: { context: /budget/ },
  })
  for (const memory_id of ids) {
    t.match(await use('edit', { memory_id, text: 'mine' }), { isError: true })
    t.match(await use('inspect', { memory_id }), { isError: true })
  }
  t.match(await use('delete', { ids }), { structuredContent: { deleted: 0, not_found: 3 } })
  t.match(await use('date_search', { from: '2000-01-01', query: 'launch' }), {
    structuredContent: { memories: { length: 2 } },
  })
  t.strictSame(await shared(), before)
})

t.test('what a member asked is in the trail at once', async t => {
  const trail = async (): Promise<number> =>
    (await admin.get(`${path}/debug/passes?author=bob&limit=200`)).body.count
  const count = await trail()
  for (let n = 1; n <= 5; n++) {
    await bob.post('/v1/memory/search', asked)
    t.equal(await trail(), count + n)
  }
  const { body } = await admin.get(`${path}/debug/passes?author=bob&limit=1`)
  t.match(body, {
    org_id: org,
    passes: [{ kind: 'retrieval', wildcard: false, permitted: 1, dropped: 2 }],
  })
})
