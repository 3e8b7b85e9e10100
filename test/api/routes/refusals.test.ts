import t, { type Test } from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { mintId } from '#shared/core/ids.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/admin.ts'
import { setBalance } from '#test/support/alter.ts'
import { createTestClient, startTestApi, type TestAnswer } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { errorMessage } from '#test/support/contract.ts'
import {
  accountIdOf,
  countDocuments,
  storedDigests,
  vaultsOfAccount,
} from '#test/support/observe.ts'
import { propertiesOf, schemaFaults, smallestValue } from '#test/support/schema-faults.ts'

/* What every endpoint refuses by its table in the contract. What only one refuses stands in the test of its route. */

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const operator = await buildAdmin(backend, operatorEmail(backend.config))
const stranger = await buildAdmin(backend)
const endpoints = Object.values(contractDocument.endpoints)
/** Forwarded to providers: their bodies are open, and their errors have the form of the family. */
const isForwarded = ({ body, path }: Endpoint): boolean =>
  body !== undefined && !isClosed(body.schema) && path !== '/v1/memory/upload'
const isClosed = ({ $ref }: { $ref: string }): boolean =>
  contractDocument.$defs[$ref.split('/').at(-1)!]!.additionalProperties === false
const ofMember = ({ path }: Endpoint): boolean => path.startsWith('/v1/shares')

type Ids = Record<string, string>

/** One of everything that a path can name; the webhook and the organization are there. */
async function buildResources(key: string, memoryKey: string): Promise<Ids> {
  const [admin, owner] = [createTestClient(base, key), createTestClient(base, memoryKey)]
  const { body: org } = await admin.post('/v1/orgs', { name: 'Acme' })
  const path = `/v1/orgs/${org.org_id}`
  const made = async (name: string, body: object) =>
    (await admin.post(`${path}/${name}`, body)).body
  const role = await made('roles', { name: 'Money' })
  const user = await made('users', { email: 'ann@example.com' })
  const member = await made('keys', { team_member_id: 'bob' })
  const tag = await made('tags', { label: 'money' })
  const reviewer = await made('reviewers', { email: 'eve@example.com' })
  const memory = await made('memories', { text: 'The budget is seven.' })
  const { body: mine } = await owner.post('/v1/keys', { name: 'minted' })
  const { body: keys } = await owner.get('/v1/keys')
  const { body: adminKeys } = await admin.get('/v1/account/admin-keys')
  const hook = { url: 'https://example.com/hook', events: ['key.revoked'] }
  const { body: webhook } = await owner.post('/v1/account/webhooks', hook)
  const { body: sent } = await owner.post(`/v1/account/webhooks/${webhook.id}/test`)
  const said = { messages: [{ role: 'user', content: 'The ferry leaves at noon.' }] }
  const { body: ingested } = await owner.post('/v1/memory/ingest', said)
  return {
    orgId: org.org_id,
    roleId: role.role_id,
    userId: user.user_id,
    keyId: member.key_id,
    tagId: tag.tag_id,
    reviewerId: reviewer.reviewer_id,
    memId: memory.mem_id,
    memoryKeyId: keys.items.find((row: { name: string }) => row.name === 'minted').id,
    adminKeyId: adminKeys.admin_keys[0].admin_key_id,
    webhookId: webhook.id,
    deliveryId: sent.id,
    id: ingested.operation_id,
    key: mine.key,
  }
}
const own = await buildResources(operator.key, operator.memoryKey)
const theirs = await buildResources(stranger.key, stranger.memoryKey)
/** What a path names that no account has, and what no test here makes. */
const nobodys: Ids = {
  ...Object.fromEntries(Object.keys(own).map(name => [name, mintId()])),
  key: `mk_${'0'.repeat(32)}`,
}
const open: Ids = { provider: 'openai', model: 'gemini-2.5-flash', queue: 'ingest' }

const pathOf = ({ path }: Endpoint, ids: Ids = {}): string =>
  path.replaceAll(/:([a-z]\w+)/gi, (part, name) =>
    name === 'generateContent' || name === 'streamGenerateContent'
      ? part
      : encodeURIComponent({ ...own, ...open, ...ids }[name as string] ?? mintId()),
  )

/** The key that may do what an endpoint does: of a member, of the account, or of the operator as an admin. */
const rightKey = (endpoint: Endpoint): string => {
  if (ofMember(endpoint)) return own.keyId!
  return endpoint.auth.includes('memory-key') ? operator.memoryKey : operator.key
}

type Request = {
  key?: string
  path?: string
  headers?: Record<string, string>
  body?: unknown
}

/** Sends what an endpoint takes, or that with one thing changed. */
const ask = (endpoint: Endpoint, request: Request): Promise<TestAnswer> => {
  const { key = rightKey(endpoint), path = pathOf(endpoint), headers = {} } = request
  const type = endpoint.body?.media[0]
  const sent = Object.hasOwn(request, 'body') ? request.body : validBody(endpoint)
  return createTestClient(base, key).send(endpoint.method, path, {
    headers: { ...(type && { 'content-type': type }), ...headers },
    ...(endpoint.body && { body: sent }),
  })
}

/** What one field says of another, and names that must mean something. */
const meaningful: Record<string, object> = {
  transfer: { destination_key: own.key },
  graft: { destination_key: own.key },
  assignRoles: { team_member_id: 'ann' },
  seedMemories: { text: 'The budget is eight.' },
  changeSharedMemory: { text: 'The budget is eight.' },
  changeTenant: { payment_method: 'card' },
  prepare: { messages: [{ role: 'user', content: 'Where is the ferry?' }] },
  ingest: { messages: [{ role: 'user', content: 'Where is the ferry?' }] },
  chat: { model: 'openai/gpt-5' },
  responses: { model: 'openai/gpt-5' },
}

function validBody({ body, operation }: Endpoint): unknown {
  if (!body) return undefined
  const valid = { ...(smallestValue(body.schema) as object), ...meaningful[operation] }
  return body.lines ? `${JSON.stringify(valid)}\n` : valid
}

/** What is wrong with a refusal; null when it is as promised. */
function misses({ status, body }: TestAnswer, expected: number, says: string[]): string | null {
  const message = errorMessage(body)
  if (status !== expected) return `${status} in place of ${expected}: ${JSON.stringify(body)}`
  if (message === undefined) return `no message: ${JSON.stringify(body)}`
  const silent = says.filter(text => !message.includes(text))
  return silent.length > 0 ? `${message}, without ${silent.join(' and ')}` : null
}

let sent = 0

const account = await accountIdOf(backend, operator.email)
const stored = async () => ({
  ...(await storedDigests(backend)),
  memories: await Promise.all(
    (await vaultsOfAccount(backend, account)).map(vault => countDocuments(backend, vault)),
  ),
})

type Case = [what: string, expected: number, says: string[], request: Request]

/** Sends the cases of each endpoint, all endpoints at once. */
async function refuses(t: Test, casesOf: (endpoint: Endpoint) => Case[]): Promise<void> {
  const before = await stored()
  await Promise.all(
    endpoints.map(async endpoint => {
      const faults: string[] = []
      for (const [what, expected, says, request] of casesOf(endpoint)) {
        sent++
        const fault = misses(await ask(endpoint, request), expected, says)
        if (fault) faults.push(`${what}: ${fault}`)
      }
      t.strictSame(faults, [], `${endpoint.method} ${endpoint.path}`)
    }),
  )
  t.strictSame(await stored(), before, 'nothing was stored')
}

t.test('400: each field of a body that is missing, misspelt, of another type or out of bounds', t =>
  refuses(t, endpoint => {
    const { body } = endpoint
    if (!body || body.lines || isForwarded(endpoint)) return []
    return schemaFaults(body.schema).map(fault => [
      `${fault.kind} of ${fault.field || 'the body'}`,
      400,
      [fault.field || 'the body', ...fault.says],
      { body: JSON.stringify(fault.value) },
    ])
  }),
)

t.test(
  '400: each parameter of a query that is misspelt, twice, of another type or out of bounds',
  t =>
    refuses(t, endpoint => {
      const { query } = endpoint
      if (!query || isForwarded(endpoint)) return []
      const at = (parameters: string[][]) =>
        `${pathOf(endpoint)}?${new URLSearchParams(parameters).toString()}`
      const names = Object.keys(propertiesOf(query))
      const faults = schemaFaults(query, { isText: true }).map(
        ({ field, kind, says, value }): Case => {
          const path = at(Object.entries(value as Record<string, string>))
          return [`${kind} of ${field}`, 400, [field, ...says], { path }]
        },
      )
      const twice = names.map((name): Case => {
        const value = [name, String(smallestValue(propertiesOf(query)[name]!))]
        return [`${name} twice`, 400, [name], { path: at([value, value]) }]
      })
      const cursor: Case = ['no cursor', 400, ['cursor'], { path: at([['cursor', 'nonsense']]) }]
      // A request line may not be longer.
      return [...faults, ...twice, ...(names.includes('cursor') ? [cursor] : [])].filter(
        ([, , , { path }]) => path!.length < 8_000,
      )
    }),
)

t.test('400: an embedding model that nobody knows', t =>
  refuses(t, endpoint => {
    const { body, query } = endpoint
    if (isForwarded(endpoint)) return []
    const embeddings = 'nobody/model'
    const cases: Case[] = []
    if (body && !body.lines && propertiesOf(body.schema).embeddings) {
      const sent = { ...(validBody(endpoint) as object), embeddings }
      cases.push(['in the body', 400, ['embeddings'], { body: sent }])
    }
    if (query && propertiesOf(query).embeddings && endpoint.operation !== 'exportVault') {
      const path = `${pathOf(endpoint)}?embeddings=${embeddings}`
      cases.push(['in the query', 400, ['embeddings'], { path }])
    }
    return cases
  }),
)

t.test('400, 415: a body that is no JSON, or a form', t =>
  refuses(t, endpoint => {
    const { body } = endpoint
    if (!body) return []
    const type = { 'content-type': 'multipart/form-data; boundary=x' }
    const cases: Case[] = body.media.some(media => media.startsWith('multipart'))
      ? []
      : [['a form', 415, [], { headers: type }]]
    if (body.media[0] === 'application/json') cases.push(['no JSON', 400, [], { body: '{"a":' }])
    return cases
  }),
)

t.test('401: without a key, with one that nobody made, and with one of the other kind', t =>
  refuses(t, endpoint => {
    const { auth } = endpoint
    if (auth.length === 0) return []
    const keys = ['', `mk_${'0'.repeat(32)}`, `mk_admin_${'0'.repeat(32)}`]
    if (!auth.includes('admin')) keys.push(operator.key)
    if (!auth.includes('memory-key')) keys.push(operator.memoryKey, own.keyId!)
    return keys.map(key => [key, 401, [], { key }])
  }),
)

t.test('403: a key that lacks a right', t =>
  refuses(t, endpoint => {
    const { path, quiet } = endpoint
    // A key whose right is switched off gets nothing there, in place of a refusal.
    const needs = quiet ? [] : endpoint.needs
    const suffixes: Record<string, string[]> = {
      read: [':write', ':off'],
      write: [':read', ':off'],
      mint: [':read', ':write', ':off'],
      govern: [':read', ':write', ':off'],
    }
    const keys = needs.flatMap(right => suffixes[right]!.map(suffix => rightKey(endpoint) + suffix))
    if (needs.includes('govern')) keys.push(own.key!, own.keyId!)
    if (path.startsWith('/v1/operator')) keys.push(stranger.key)
    return keys.map(key => [key, 403, [], { key }])
  }),
)

t.test('400: a key that has the right and no other is heard', t =>
  refuses(t, endpoint => {
    const { needs, body } = endpoint
    const [right] = needs
    if (needs.length !== 1 || !body || !['read', 'write'].includes(right!)) return []
    const key = `${rightKey(endpoint)}:${right}`
    return [[key, 400, [], { key, body: '{' }]]
  }),
)

t.test('400: headers that are longer than they may be', t =>
  refuses(t, endpoint => {
    const { headers } = endpoint
    if (!headers || isForwarded(endpoint)) return []
    return ['x-session-id', 'idempotency-key', 'x-memory-user']
      .filter(name => Object.hasOwn(propertiesOf(headers), name))
      .map(name => [name, 400, ['256'], { headers: { [name]: 'x'.repeat(257) } }])
  }),
)

t.test('404: what another account has, in the words for what nobody has, or cannot be', async t => {
  const before = await stored()
  for (const endpoint of endpoints) {
    if (!endpoint.params || isForwarded(endpoint)) continue
    const named = endpoint.path.match(/(?<=:)[a-z]\w+/gi)!
    for (const name of named.filter(name => !Object.hasOwn(open, name))) {
      const ids = [nobodys[name]!, 'nothing', ...(theirs[name] ? [theirs[name]] : [])]
      const answers = await Promise.all(
        ids.map(async id => {
          const { status, body } = await ask(endpoint, { path: pathOf(endpoint, { [name]: id }) })
          sent++
          return { status, body: JSON.stringify(body).replaceAll(id, 'the id') }
        }),
      )
      const [missing] = answers
      const what = `${name} of ${endpoint.method} ${endpoint.path}`
      t.match(missing, { status: 404, body: /^{"error":"/ }, what)
      for (const answer of answers) t.strictSame(answer, missing, what)
    }
  }
  t.strictSame(await stored(), before, 'nothing was stored')
})

t.test('402: of an account whose balance is used up', async t => {
  await setBalance(backend, { account }, 0)
  const headers = { 'x-provider-key': 'sk-none' }
  await refuses(t, ({ errors, operation }) =>
    // A batch must be there first, and of a review only better words cost: the tests of their routes ask.
    errors.includes(402) && !['commit', 'reviewMemory'].includes(operation)
      ? [['no balance', 402, [], { headers }]]
      : [],
  )
})

t.test('every endpoint was asked', async t => {
  t.ok(sent > 2_000, `${sent} requests were refused`)
})
