import { Readable } from 'node:stream'
import t from 'tap'
import { describeChange } from '#api/console/app/vault/event-change.ts'
import type { AccountEvent } from '#api/contract/generated/types.ts'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import { verifyExportFile } from '#shared/accounts/verify-export-file.ts'
import { maskKey } from '#shared/access/key.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import type { TestClient } from '#test/support/start/api.ts'
import type { Test } from 'tap'
import { accountIdOf } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)

const listEvents = async (admin: TestClient, asked = 'limit=500'): Promise<AccountEvent[]> =>
  (await admin.get(`/v1/account/events?${asked}`)).body.items

/** The events of what is done meanwhile, oldest first, and that each names this admin and organization. */
async function eventsOf(
  t: Test,
  { admin, email, org }: { admin: TestClient; email: string; org: string },
  does: () => Promise<unknown>,
) {
  const [last] = await listEvents(admin, 'limit=1')
  await does()
  const events = (await listEvents(admin)).filter(({ position }) => position > last!.position)
  for (const event of events) t.match(event, { actor: email, org_id: org }, event.action)
  return events
    .toReversed()
    .map(({ action, subject, before, after }) => ({ action, subject, before, after }))
}

t.test('roles: created, changed, assigned and removed, with before and after', async t => {
  const scope = await buildOrg(backend, base)
  const { admin, path } = scope
  let role = ''
  let user = ''
  const events = await eventsOf(t, scope, async () => {
    const given = { name: 'finance', allowed_tags: ['pay'] }
    const headers = { 'idempotency-key': 'once' }
    role = (await admin.post(`${path}/roles`, given, headers)).body.role_id
    await admin.post(`${path}/roles`, given, headers)
    await admin.send('PATCH', `${path}/roles/${role}`, { body: { allowed_tags: ['pay', 'hr'] } })
    await admin.send('PATCH', `${path}/roles/${role}`, { body: { allowed_tags: ['pay', 'hr'] } })
    const asked = { team_member_id: 'ben', role_ids: [role] }
    user = (await admin.post(`${path}/role-assignments`, asked)).body.user_id
    await admin.post(`${path}/role-assignments`, asked)
    await admin.post(`${path}/role-assignments`, { ...asked, role_ids: [crypto.randomUUID()] })
    await admin.send('DELETE', `${path}/roles/${role}`)
  })
  const ben = { team_member_id: 'ben' }
  t.same(events, [
    {
      action: 'role.created',
      subject: role,
      before: null,
      after: { name: 'finance', allowed_tags: ['pay'] },
    },
    {
      action: 'role.changed',
      subject: role,
      before: { name: 'finance', allowed_tags: ['pay'] },
      after: { name: 'finance', allowed_tags: ['pay', 'hr'] },
    },
    {
      action: 'user.created',
      subject: user,
      before: null,
      after: { ...ben, email: null, roles: [] },
    },
    {
      action: 'role.assigned',
      subject: user,
      before: { ...ben, roles: [] },
      after: { ...ben, roles: ['finance'] },
    },
    {
      action: 'role.deleted',
      subject: role,
      before: { name: 'finance', allowed_tags: ['pay', 'hr'] },
      after: null,
    },
  ])
  t.same(describeChange(events[1]!), { name: 'finance', details: 'allowed tags: pay → pay + hr' })
  t.same(describeChange(events[3]!), { name: 'ben', details: 'roles: none → finance' })
})

t.test('tags and instructions: labels and counts, never their examples and words', async t => {
  const scope = await buildOrg(backend, base)
  const { admin, path } = scope
  const events = await eventsOf(t, scope, async () => {
    const made = { label: 'pay', question: 'Is it about pay?', examples: ['Eve earns 90k'] }
    const { tag_id: tag } = (await admin.post(`${path}/tags`, made)).body
    await admin.send('PATCH', `${path}/tags/${tag}`, { body: { label: 'wages' } })
    await admin.send('PATCH', `${path}/tags/${tag}`, { body: { examples: ['Ada earns 80k'] } })
    await admin.send('DELETE', `${path}/tags/${tag}`)
    const rules = { custom: 'Keep deadlines', anti_rules: [{ match: 'merger with Hooli' }] }
    await admin.send('PUT', `${path}/instructions`, { body: rules })
    await admin.send('PUT', `${path}/instructions`, { body: { custom: 'Keep headlines' } })
    await admin.send('PUT', `${path}/instructions`, { body: { custom: 'Keep headlines' } })
  })
  const digest = /^[0-9a-f]{64}$/
  t.match(events, [
    { action: 'tag.created', after: { label: 'pay', examples: 1, negatives: 0, sha256: digest } },
    { action: 'tag.changed', before: { label: 'pay' }, after: { label: 'wages' } },
    {
      action: 'tag.changed',
      before: { label: 'wages' },
      after: { label: 'wages', sha256: digest },
    },
    { action: 'tag.deleted', before: { label: 'wages' }, after: null },
    {
      action: 'instructions.changed',
      subject: scope.org,
      before: { custom_characters: 0, anti_rules: [] },
      after: { custom_characters: 14, anti_rules: [/^[0-9a-f-]{36}$/] },
    },
    { action: 'instructions.changed', before: { sha256: digest }, after: { sha256: digest } },
  ])
  t.equal(events.length, 6)
  const stored = JSON.stringify(events)
  for (const word of ['earns', 'Hooli', 'deadlines', 'about pay']) t.notOk(stored.includes(word))
  t.same(describeChange(events[2]!), { name: 'wages', details: 'words changed' })
})

t.test('settings of the organization, its pipeline and its budget', async t => {
  const scope = await buildOrg(backend, base)
  const { admin, path, org } = scope
  const patch = (body: object) => admin.send('PATCH', path, { body })
  const events = await eventsOf(t, scope, async () => {
    await patch({ extract_model: 'gpt-6' })
    await patch({ pipeline_paused: true, daily_token_budget: 1000 })
    await patch({ daily_token_budget: null })
    await patch({ pipeline_paused: true })
    await patch({ name: ' ' })
  })
  const name = 'Acme'
  const action = 'organization.changed'
  t.same(
    events.map(event => ({ ...event, before: null })),
    [
      { name, extract_model: 'gpt-6' },
      { name, pipeline_paused: true, daily_token_budget: 1000 },
      { name, daily_token_budget: null },
    ].map(after => ({ action, subject: org, before: null, after })),
  )
  t.same(events[1]!.before, { name, pipeline_paused: false, daily_token_budget: null })
  t.same(describeChange(events[1]!), {
    name: 'Acme',
    details: 'pipeline paused: off → on, daily token budget: none → 1000',
  })
})

t.test('keys that an admin reads, mints and rotates, and users that come and go', async t => {
  const scope = await buildOrg(backend, base)
  const { admin, path } = scope
  const { memory_key: key, key_id: id } = (
    await admin.post(`${path}/keys`, { team_member_id: 'ben' })
  ).body
  const revealed = await eventsOf(t, scope, async () => {
    t.equal((await admin.get(`${path}/keys/${id}`)).body.memory_key, key)
    t.equal((await admin.get(`${path}/keys/${crypto.randomUUID()}`)).status, 404)
    await admin.get(`${path}/keys`)
  })
  t.equal(revealed.length, 1)
  t.match(revealed, [
    {
      action: 'key.revealed',
      subject: maskKey(key),
      before: null,
      after: { key_id: /^[0-9a-f-]{36}$/, team_member_id: 'ben' },
    },
  ])
  const { admin: stranger } = await buildOrg(backend, base)
  t.equal((await stranger.get(`${path}/keys/${id}`)).status, 404)
  t.equal((await listEvents(stranger, 'action=key.revealed')).length, 0)

  const { user_id: ada } = (await admin.post(`${path}/users`, { email: 'ada@example.com' })).body
  await admin.send('PATCH', `${path}/users/${ada}`, { body: { email: 'a@example.com' } })
  await admin.send('PATCH', `${path}/users/${ada}`, { body: { first_name: 'Ada' } })
  await admin.post(`${path}/users/${ada}/memory-key`)
  const { key: second } = (await admin.post(`${path}/users/${ada}/memory-key`)).body
  await admin.send('DELETE', `${path}/users/${ada}`)
  const actions = (await listEvents(admin)).toReversed().slice(-7)
  t.same(
    actions.slice(0, 5).map(({ action, subject }) => [action, subject === ada]),
    [
      ['user.created', true],
      ['user.changed', true],
      ['key.minted', false],
      ['key.revoked', false],
      ['key.rotated', false],
    ],
  )
  t.match(actions[4], { subject: maskKey(second), after: { user_id: ada } })
  t.same(
    actions
      .slice(5)
      .map(({ action }) => action)
      .toSorted(),
    ['key.revoked', 'user.deleted'],
  )
})

t.test('events with details are in the chain, also in that of an export', async t => {
  const { admin, path, email } = await buildOrg(backend, base)
  await admin.post(`${path}/roles`, { name: 'Größe "x"', allowed_tags: ['*'] })
  await admin.send('PATCH', path, { body: { daily_token_budget: 5 } })
  const account = await accountIdOf(backend, email)
  t.match(await verifyAccountEvents(backend.postgres.query, account), { broken: null })
  const { body: lines } = await admin.get('/v1/account/export')
  const texts = (lines as unknown as object[]).map(line => JSON.stringify(line))
  const verified = await verifyExportFile(Readable.from(texts))
  t.equal(verified.fault, null)
  t.match(
    verified.chains.find(chain => 'account' in chain),
    { account, position: 7, broken: null },
  )
})
