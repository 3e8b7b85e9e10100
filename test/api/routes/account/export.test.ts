import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { exportAccountItems, type AccountExportItem } from '#shared/accounts/export-account.ts'
import { accountIdOf } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const path = '/v1/account/export'

type Line = { type: string; [field: string]: unknown }

t.test('200: everything of an account, and nothing of anybody else', async t => {
  const { admin, email, org, path: orgPath } = await buildOrg(backend, base)
  const { key, ...client } = await newClient(email)
  const stranger = await newClient()
  const said = (content: string, session_id?: string) => ({
    messages: [{ role: 'user', content }],
    ...(session_id && { session_id }),
  })
  await client.post('/v1/memory/ingest?wait=true', said('my cat is called Ada'))
  await client.post('/v1/memory/ingest?wait=true', said('in a chat', 'chat-1'))
  await stranger.post('/v1/memory/ingest?wait=true', said('I am somebody else'))
  await client.send('PUT', '/v1/account/provider-keys/openai', {
    body: { key: 'sk-0123456789abcd' },
  })
  const hook = { url: 'https://example.com/', events: ['key.revoked'] }
  const { body: webhook } = await client.post('/v1/account/webhooks', hook)
  await admin.post(`${orgPath}/tags`, { label: 'finance' })
  await admin.post(`${orgPath}/roles`, { name: 'Accounting', allowed_tags: ['finance'] })
  const { body: member } = await admin.post(`${orgPath}/keys`, {
    team_member_id: 'ben@example.com',
  })
  const ben = createTestClient(base, member.memory_key)
  await ben.post('/v1/memory/ingest?wait=true', said('what Ben says to himself'))
  const shared = Array.from({ length: 3 }, (_, n) => ({ text: `we share ${n}`, tags: ['finance'] }))
  await admin.post(`${orgPath}/memories`, { items: shared })

  const { status, headers, body } = await client.get(path)
  t.equal(status, 200)
  t.match(headers.get('content-type'), /x-ndjson/)
  const lines = body as Line[]
  const of = (type: string) => lines.filter(line => line.type === type)
  t.match(of('account'), [{ email }])
  t.match(of('provider_key'), [{ provider: 'openai', masked_key: /^sk-…/ }])
  t.match(of('webhook'), [{ id: webhook.id, url: hook.url }])
  t.ok(
    of('vault').some(({ keys }) =>
      (keys as { masked_key: string }[]).some(({ masked_key: masked }) =>
        masked.endsWith(key.slice(-4)),
      ),
    ),
  )
  t.match(
    of('memory').map(({ content, session_id: session }) => [content, session]),
    [
      ['my cat is called Ada', null],
      ['in a chat', 'chat-1'],
    ],
  )
  t.match(of('policy'), [{ decided_by: 'default' }, { org_id: org }])
  t.match(of('organization'), [{ org_id: org, name: 'Acme' }])
  t.match(of('instructions'), [{ org_id: org }])
  t.match(of('tag'), [{ org_id: org, label: 'finance' }])
  t.match(of('role'), [{ org_id: org, name: 'Accounting' }])
  t.match(of('user'), [{ org_id: org, team_member_id: 'ben@example.com' }])
  t.match(of('audit_event'), [{ position: 1 }, { position: 2 }, { position: 3, org_id: org }])
  const events = of('account_event')
  t.match(
    events.find(({ action }) => action === 'tag.created'),
    { org_id: org, after: { label: 'finance' } },
  )
  t.match(events.at(-1), { position: events.length, action: 'account.exported' })
  t.match(lines.at(-1), { type: 'end', lines: lines.length - 1, counts: { memory: 2, tag: 1 } })
  t.same(
    of('shared_memory')
      .map(({ text }) => text)
      .toSorted(),
    shared.map(({ text }) => text),
  )
  const whole = JSON.stringify(lines)
  for (const secret of ['somebody else', 'Ben says', webhook.secret, key, member.memory_key]) {
    t.notOk(whole.includes(secret as string), 'no word and no secret of it')
  }
  const again = (await admin.get(path)).body as Line[]
  t.equal(again.length, lines.length + 1, 'the admin gets the same, and that it was exported')

  const own = (await admin.get(`${orgPath}/export`)).body as Line[]
  const bare = (line: Line) => ({ ...line, last_used_at: null })
  t.same(
    lines.filter(line => line.org_id === org && line.type !== 'account_event').map(bare),
    own.filter(({ type }) => type !== 'end').map(bare),
    'the organization is in the same lines',
  )
})

t.test('200: what is cleared or removed meanwhile ends there, and the rest follows', async t => {
  const { admin, email, path: orgPath } = await buildOrg(backend, base)
  const first = await newClient(email)
  const second = await newClient(email)
  const said = (content: string) => ({ messages: [{ role: 'user', content }] })
  await first.post('/v1/memory/ingest?wait=true', said('the first vault'))
  await second.post('/v1/memory/ingest?wait=true', said('the second vault'))
  const account = await accountIdOf(backend, email)

  const items: AccountExportItem[] = []
  for await (const item of exportAccountItems(backend, account)) {
    items.push(item)
    if (item.type !== 'memory' || items.some(({ type }) => type === 'organization')) continue
    const cleared = item.memory.content === 'the first vault' ? first : second
    t.ok((await cleared.send('DELETE', '/v1/memory')).status < 300)
  }
  t.equal(items.filter(({ type }) => type === 'memory').length, 2, 'both were read first')
  t.ok(
    items.some(({ type }) => type === 'organization'),
    'the organization follows',
  )

  for await (const { type } of exportAccountItems(backend, account)) {
    items.push({ type } as AccountExportItem)
    if (type === 'organization') t.ok((await admin.send('DELETE', orgPath)).status < 300)
  }
  t.equal(items.at(-1)!.type, 'account_event', 'the events follow')
})
