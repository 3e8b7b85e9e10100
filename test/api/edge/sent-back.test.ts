import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { startEveryEndpoint } from '#test/support/checks/every-endpoint.ts'

/* What a resource's own GET answers may be sent back; what cannot be changed there, only as it is. */

const { backend, base, operator, own } = await startEveryEndpoint(t)
const owner = createTestClient(base, operator.memoryKey)
const admin = createTestClient(base, operator.key)
const member = createTestClient(base, own.keyId)
const org = `/v1/orgs/${own.orgId}`
await owner.send('PUT', '/v1/account/provider-keys/openai', {
  body: { key: `sk-${'x'.repeat(40)}` },
})

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as clients read them
type Body = any

type Resource = {
  client: typeof owner
  read: string
  find?: (answer: Body) => Body
  change: string
  /** One field that is set, so that there is something to change. */
  set: object
  /** Changed, each of these is refused by its name. */
  readOnly: Record<string, unknown>
}

const resources: Resource[] = [
  {
    client: owner,
    read: '/v1/keys',
    find: ({ items }) => items.find(({ id }: Body) => id === own.memoryKeyId),
    change: `PATCH /v1/keys/${own.memoryKeyId}`,
    set: { daily_requests: 500 },
    readOnly: {
      active: false,
      expires_at: '2030-01-01T00:00:00Z',
      rights: 'memory',
      budget: 5,
      revoked_at: '2030-01-01T00:00:00Z',
    },
  },
  {
    client: admin,
    read: org,
    change: `PATCH ${org}`,
    set: { name: 'Acme' },
    readOnly: { 'pipeline.paused': true, 'pipeline.daily_token_budget': 5, owner_email: 'x@y.z' },
  },
  {
    client: admin,
    read: `${org}/users`,
    find: ({ users }) => users.find(({ user_id: id }: Body) => id === own.userId),
    change: `PATCH ${org}/users/${own.userId}`,
    set: { first_name: 'Anna' },
    readOnly: { roles: [{ role_id: own.roleId, name: 'Money' }], shares: false },
  },
  {
    client: admin,
    read: `${org}/roles`,
    find: ({ roles }) => roles[0],
    change: `PATCH ${org}/roles/${own.roleId}`,
    set: { name: 'Coins' },
    readOnly: { created_at: 1 },
  },
  {
    client: admin,
    read: `${org}/tags`,
    find: ({ tags }) => tags[0],
    change: `PATCH ${org}/tags/${own.tagId}`,
    set: { question: 'Is it about coins?' },
    readOnly: { org_id: own.roleId },
  },
  {
    client: admin,
    read: `${org}/instructions`,
    change: `PUT ${org}/instructions`,
    set: { custom: 'Keep coins.' },
    readOnly: { org_id: own.roleId },
  },
  {
    client: admin,
    read: `${org}/policy`,
    change: `PUT ${org}/policy`,
    set: { redaction: { mode: 'redact', kinds: ['card'] } },
    readOnly: { decided_by: 'account' },
  },
  {
    client: admin,
    read: `${org}/memories`,
    find: ({ items }) => items.find(({ mem_id: id }: Body) => id === own.memId),
    change: `PATCH ${org}/memories/${own.memId}`,
    set: { reviewed: true },
    readOnly: { author: 'bob', sensitivity: 'restricted', pending: true },
  },
  {
    client: owner,
    read: '/v1/account/policy',
    change: 'PUT /v1/account/policy',
    set: { trace_days: 9 },
    readOnly: { decided_by: 'organization' },
  },
  {
    client: owner,
    read: `/v1/account/webhooks/${own.webhookId}`,
    change: `PATCH /v1/account/webhooks/${own.webhookId}`,
    set: { description: 'mine' },
    readOnly: { disabled_reason: 'gone', created_at: '2020-01-01T00:00:00Z' },
  },
  {
    client: owner,
    read: '/v1/account/provider-keys',
    find: ({ provider_keys: keys }) => keys[0],
    change: 'PUT /v1/account/provider-keys/openai',
    set: { key: `sk-${'y'.repeat(40)}` },
    readOnly: { masked_key: 'sk-…z', provider: 'anthropic' },
  },
  {
    client: member,
    read: '/v1/shares',
    find: ({ shares, key_shares }) => ({ shares, key_shares }),
    change: 'PATCH /v1/shares',
    set: { shares: true },
    readOnly: { key_shares: false },
  },
  {
    client: admin,
    read: '/v1/operator/tenants',
    find: ({ items }) => items.find(({ email }: Body) => email === operator.email),
    change: 'PATCH /v1/operator/tenants/:accountId',
    set: { users_max: 50 },
    readOnly: { email: 'x@y.z', created_at: '2020-01-01T00:00:00Z' },
  },
]

for (const { client, read, find = (answer: Body) => answer, change, set, readOnly } of resources) {
  t.test(change, async t => {
    const [method, form] = change.split(' ') as [string, string]
    const readNow = async () => find((await client.get(read)).body)
    const path = form.replace(':accountId', (await readNow()).account_id)
    const send = async (body: object) => {
      const answer = await client.send(method, path, { body })
      return { status: answer.status, body: answer.body }
    }
    const sentBack = await send({ ...(await readNow()), ...set })
    t.equal(sentBack.status, 200, JSON.stringify(sentBack.body))
    const before = await readNow()
    for (const [name, value] of Object.entries(readOnly)) {
      const [field, inner] = name.split('.') as [string, string?]
      const changed = inner ? { [field]: { ...before[field], [inner]: value } } : { [name]: value }
      const alone = await send(changed)
      t.match(alone, { status: 400, body: { error: `${name} cannot be changed here` } })
      t.equal((await send({ ...set, ...changed })).status, 400, `${name} beside another`)
    }
    for (const nothing of [{}, { [Object.keys(readOnly)[0]!.split('.')[0]!]: null }]) {
      t.match(await send(nothing), { status: 400, body: { error: String } }, 'nothing to change')
    }
    const { status, body } = await send({ ...set, zzzz: 1 })
    t.match({ status, body }, { status: 400, body: { error: 'unknown field zzzz' } })
    const after = await readNow()
    for (const moving of ['pipeline', 'last_used_at', 'updated_at']) {
      delete before[moving]
      delete after[moving]
    }
    t.strictSame(after, before, 'nothing was changed')
  })
}

t.test(
  'an edit takes the row of a list, and its answer again with its Idempotency-Key',
  async t => {
    await startJobWorkers(backend)
    const said = { messages: [{ role: 'user', content: 'The tram leaves at nine.' }] }
    await owner.post('/v1/memory/ingest?wait=true', said)
    const { items } = (await owner.get('/v1/memory/list?search=tram')).body
    const edit = { ...items[0], text: 'The tram leaves at ten, and stops twice.' }
    const headers = { 'idempotency-key': 'edit-1' }
    for (const time of ['first', 'again']) {
      const answer = await owner.send('POST', '/v1/memory/edit', { body: edit, headers })
      t.match(answer, { status: 200, body: { updated: true } }, time)
    }
    t.match(await owner.post('/v1/memory/edit', { ...edit, role: 'assistant' }), {
      status: 400,
      body: { error: /cannot be changed here/ },
    })
    t.match(await owner.post('/v1/memory/edit', { ...edit, metadata: { a: 1 } }), { status: 400 })
  },
)
