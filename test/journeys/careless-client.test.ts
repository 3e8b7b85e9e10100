import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { startService } from '#test/support/start/start-service.ts'

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

/** A request for each of some names, beside what is fine. */
const each = (method: string, path: string, names: string, fine: object = {}): Sent[] =>
  names.split(' ').map(name => [method, path, { ...fine, [name]: 1 }])

t.test('of a vault and an account', async t => {
  const client = await newClient()
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'The heron stands in the reeds.' }],
    metadata: { agent: 'A' },
  })
  const { body: other } = await client.post('/v1/keys', { name: 'other' })
  const { body: before } = await client.get('/v1/keys')
  const otherPath = `/v1/keys/${before.items.find((row: { name: string }) => row.name === 'other').id}`
  const hook = { url: 'https://example.com/hook', events: ['key.revoked'] }
  const { body: webhook } = await client.post('/v1/account/webhooks', hook)
  const hookPath = `/v1/account/webhooks/${webhook.id}`
  const copy = { destination_key: other.key }
  const filter = { metadata: { agent: 'A' } }
  const careless: Sent[] = [
    ['POST', '/v1/account/erase', { email: 'someone@example.com', dry_run: true }],
    ...each('POST', '/v1/keys/rotate', 'dry_run grace grace_period grace_minutes'),
    ...each('POST', `${otherPath}/remint`, 'keep_old dry_run grace_minutes'),
    ...each('PATCH', otherPath, 'active revoked expires_at rights budget'),
    ['DELETE', otherPath, { dry_run: true }],
    ['POST', '/v1/memory/reembed', { dry_run: true }],
    ...each(
      'POST',
      '/v1/memory/delete-ids',
      'session_id session tiers tier from before older_than_days limit query importance user external_id preview dry simulate',
      filter,
    ),
    ['POST', '/v1/memory/delete-ids', filter, { 'x-session-id': 's' }],
    ['POST', '/v1/memory/delete-ids?preview=true', filter],
    ...each(
      'POST',
      '/v1/keys',
      'expires_in_days expires_in_seconds expiry expiration ttl valid_until not_after scope scopes permissions permission access role read_only readonly mode memory_mode daily_requests daily_tokens budget user user_id memory_user',
      { name: 'k' },
    ),
    ['POST', '/v1/keys?scope=read', { name: 'k' }],
    ['POST', '/v1/keys?mode=read', { name: 'k' }],
    ...each(
      'POST',
      '/v1/memory/transfer',
      'queries threshold metadata ids tiers limit from since session_id query preview dry simulate test source_key',
      copy,
    ),
    ['POST', '/v1/memory/transfer?preview=true', copy],
    ...each(
      'POST',
      '/v1/memory/graft',
      'min_score min_relevance min_similarity thresh score similarity metadata tiers top_k',
      { ...copy, queries: ['heron'] },
    ),
    ['POST', '/v1/memory/transfer', copy, { 'x-session-id': 's' }],
    ...each('PUT', '/v1/account/policy', 'retention days redact'),
    ...each('PATCH', hookPath, 'enabled disabled status'),
    ...each('POST', '/v1/account/provider-keys/openai/check', 'api_key', { models: ['gpt-5'] }),
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
    ['PATCH', path, { paused: true }],
    ['PATCH', path, { pipeline: { paused: true } }],
    ['PUT', `${path}/instructions`, { never_rules: ['salaries'] }],
    ['POST', `${path}/tags/${tag.tag_id}/apply`, { preview: true }],
    ['DELETE', `${path}/tags/${tag.tag_id}`, { dry_run: true }],
    ['DELETE', path, { dry_run: true }],
    ...each('POST', '/v1/account/admin-keys', 'expires_at expires_in days scope role org_id'),
    ...each('POST', `${path}/reviewers`, 'expires_in_days expires_at tags', {
      email: 'eve@example.com',
    }),
    ...each('POST', `${path}/scim-tokens`, 'expires_in_days read_only groups scope'),
    ['PUT', `${path}/directory`, { required: true }],
    ['PUT', `${path}/directory`, { grants: [{ group: 'a', roles: [role.role_id] }] }],
    ['PATCH', `${path}/users/${user.user_id}`, { active: false }],
    ...each('POST', `${path}/keys`, 'expires_at expires_in_days read_only', {
      team_member_id: 'ada@example.com',
    }),
    ...each('POST', `${path}/memories/${mintId()}/restore`, 'dry_run version event'),
    ...each('POST', `${path}/memories/${mintId()}/review`, 'labels', { action: 'approve' }),
    ['DELETE', `${path}/roles/${role.role_id}`, { dry_run: true }],
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
