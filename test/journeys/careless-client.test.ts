import t from 'tap'
import { createTestClient } from '#test/support/api.ts'
import { buildOrg } from '#test/support/admin.ts'
import { startService } from '#test/support/start-service.ts'

/**
 * A client that misremembers names. Each of its requests did the widest thing it could, with a 2xx, before calls that
 * change something refused what they do not know; none does anything now.
 */

const { backend, base, newClient } = await startService(t)

type Sent = [
  method: string,
  path: string,
  body?: object | undefined,
  headers?: Record<string, string>,
]

t.test('of a vault and an account', async t => {
  const client = await newClient()
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'The heron stands in the reeds.' }],
    metadata: { agent: 'A' },
  })
  const { body: other } = await client.post('/v1/keys', { name: 'other' })
  const copy = { destination_key: other.key }
  const filter = { metadata: { agent: 'A' } }
  const careless: Sent[] = [
    ['POST', '/v1/account/erase', { email: 'someone@example.com', dry_run: true }],
    ['POST', '/v1/keys/rotate', { dry_run: true }],
    ['POST', '/v1/keys/rotate', { grace_period: 3_600 }],
    ['POST', '/v1/memory/reembed', { dry_run: true }],
    ...['session_id', 'tiers', 'from', 'older_than_days', 'limit', 'query', 'preview', 'user'].map(
      (name): Sent => ['POST', '/v1/memory/delete-ids', { ...filter, [name]: 'x' }],
    ),
    ['POST', '/v1/memory/delete-ids', filter, { 'x-session-id': 's' }],
    ['POST', '/v1/memory/delete-ids?preview=true', filter],
    ...[
      'expires_in_days',
      'ttl',
      'valid_until',
      'scope',
      'permissions',
      'read_only',
      'daily_requests',
      'user_id',
    ].map((name): Sent => ['POST', '/v1/keys', { name: 'k', [name]: 1 }]),
    ...['queries', 'threshold', 'metadata', 'ids', 'limit', 'since', 'session_id', 'preview'].map(
      (name): Sent => ['POST', '/v1/memory/transfer', { ...copy, [name]: 1 }],
    ),
    ...['min_score', 'min_relevance', 'similarity', 'top_k', 'tiers'].map((name): Sent => [
      'POST',
      '/v1/memory/graft',
      { ...copy, queries: ['heron'], [name]: 1 },
    ]),
    ['POST', '/v1/memory/transfer', copy, { 'x-session-id': 's' }],
    ['PUT', '/v1/account/policy', { retention: 30 }],
    ['PUT', '/v1/account/policy', { redact: 'mask' }],
    ['DELETE', '/v1/memory', { dry_run: true }],
    ...['x-session', 'x-sessionid', 'session-id', 'x-memory-usr', 'x-memory-user-id'].map(
      (name): Sent => ['DELETE', '/v1/memory', undefined, { [name]: 's' }],
    ),
  ]
  for (const [method, path, body, headers] of careless) {
    const answer = await client.send(method, path, {
      ...(body && { body }),
      ...(headers && { headers }),
    })
    const what = `${method} ${path} ${JSON.stringify(body)} ${JSON.stringify(headers ?? {})}`
    t.match(answer, { status: 400, body: { error: String } }, what)
  }
  const { body: found } = await client.post('/v1/memory/search', { query: 'heron', limit: 5 })
  t.equal(found.totalMemories, 1, 'nothing was deleted')
  const copied = await createTestClient(base, other.key).get('/v1/memory/stats')
  t.equal(copied.body.memories, 0, 'nothing was copied')
  const { body: keys } = await client.get('/v1/keys')
  t.equal(keys.items.length, 2, 'no key was made')
})

t.test('of a team', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'hr' })
  const { body: role } = await admin.post(`${path}/roles`, { name: 'All', allowed_tags: ['*'] })
  const { body: user } = await admin.post(`${path}/users`, {
    email: 'ada@example.com',
    role_ids: [role.role_id],
  })
  const careless: Sent[] = [
    ['POST', `${path}/memories`, { text: 'We merge with Globex.', labels: ['hr'] }],
    ['POST', `${path}/memories`, { text: 'We merge with Globex.', visibility: 'private' }],
    ['POST', `${path}/memories`, { items: [{ text: 'We merge with Globex.', labels: ['hr'] }] }],
    ['PATCH', `${path}/users/${user.user_id}`, { roles: [] }],
    ['PATCH', `${path}/roles/${role.role_id}`, { tags: ['finance'] }],
    ['PATCH', `${path}/roles/${role.role_id}`, { remove_tags: ['hr'] }],
    ['POST', `${path}/roles`, { name: 'Some', allowed_tags: ['*'], except: ['hr'] }],
    ['PATCH', path, { daily_budget: 5 }],
    ['PUT', `${path}/instructions`, { never_rules: ['salaries'] }],
    ['POST', `${path}/tags/${tag.tag_id}/apply`, { preview: true }],
    ['DELETE', `${path}/tags/${tag.tag_id}`, { dry_run: true }],
    ['DELETE', path, { dry_run: true }],
    ['POST', '/v1/account/admin-keys', { expires_at: '2099-01-01', scope: 'read' }],
    ['POST', `${path}/reviewers`, { email: 'eve@example.com', tags: ['hr'] }],
    ['POST', `${path}/keys`, { team_member_id: 'ada@example.com', read_only: true }],
  ]
  for (const [method, path, body] of careless) {
    const answer = await admin.send(method, path, { ...(body && { body }) })
    t.match(
      answer,
      { status: 400, body: { error: String } },
      `${method} ${path} ${JSON.stringify(body)}`,
    )
  }
  const { body: shared } = await admin.get(`${path}/memories`)
  t.same(shared.items, [], 'nothing was shared')
  t.equal((await admin.get(path)).status, 200, 'the team is there')
})
