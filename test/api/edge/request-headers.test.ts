import t from 'tap'
import { createTestClient, buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import { countDocuments, vaultsOfAccount, accountIdOf } from '#test/support/checks/observe.ts'
import { buildAdmin } from '#test/support/start/admin.ts'

/* Headers of ours are judged as fields are: what is misspelt must not open, store or delete more than was meant. */

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const { base } = await startTestApi(t, backend)
const admin = await buildAdmin(backend)
const owner = createTestClient(base, admin.memoryKey)
const key = await buildKey(backend)
const client = createTestClient(base, key)
const messages = [{ role: 'user', content: 'The ferry leaves at noon.' }]
const account = await accountIdOf(backend, admin.email)
const ignoredOf = ({ headers }: { headers: Headers }) => headers.get('x-memory-ignored-fields')

type Request = [method: string, path: string, body?: object]
const reading: Request = ['POST', '/v1/memory/search', { query: 'ferry', limit: 3 }]
const listing: Request = ['GET', '/v1/memory/list']
const preparing: Request = ['POST', '/v1/memory/prepare', { messages }]
const storing: Request = ['POST', '/v1/memory/ingest', { messages }]
const clearing: Request = ['DELETE', '/v1/memory']
const minting: Request = ['POST', '/v1/keys', {}]
const renaming: Request = ['PUT', '/v1/account/policy', { trace_days: 9 }]

const send = (by: typeof client, [method, path, body]: Request, header: string, value = 's') =>
  by.send(method, path, { headers: { [header]: value }, ...(body && { body }) })

t.test('400: a session or a user that is misspelt, wherever a vault is opened', async t => {
  const headers: [header: string, meant: string][] = [
    ['X-Session', 'X-Session-ID'],
    ['X-SessionID', 'X-Session-ID'],
    ['Session-ID', 'X-Session-ID'],
    ['Session', 'X-Session-ID'],
    ['X-Sesion-ID', 'X-Session-ID'],
    ['X-Memory-Usr', 'X-Memory-User'],
    ['X-Memory-User-Id', 'X-Memory-User'],
    ['X-Memory-User-Form', 'X-Memory-User-From'],
    ['Memory-User', 'X-Memory-User'],
    ['X-Memory-Session', 'X-Memory-Sessions'],
    ['X-Memry-User', 'X-Memory-User'],
    ['X-Embeding-Model', 'X-Embedding-Model'],
  ]
  for (const [header, meant] of headers) {
    for (const request of [reading, listing, preparing, storing, clearing]) {
      t.match(
        await send(owner, request, header),
        {
          status: 400,
          body: { error: `unknown header ${header.toLowerCase()}`, hint: /did you mean/ },
        },
        `${header} on ${request[1]}`,
      )
    }
    t.match((await send(owner, clearing, header)).body.hint, meant)
  }
})

t.test('calls that change something take the headers of their table', async t => {
  for (const [request, header] of [
    [clearing, 'X-Memory-Colour'],
    [clearing, 'X-User-ID'],
    [clearing, 'X-Embedding-Model'],
    [minting, 'X-Session-ID'],
    [minting, 'X-Memory-Mode'],
    [renaming, 'X-Memory-TTL'],
    [renaming, 'X-Memory-Dry-Run'],
    [['POST', '/v1/memory/transfer', { destination_key: key }], 'X-Session-ID'],
    [['POST', '/v1/memory/delete-ids', { metadata: { a: 'b' } }], 'X-Session-ID'],
  ] satisfies [Request, string][]) {
    const answer = await send(owner, request, header)
    t.match(
      answer,
      { status: 400, body: { error: `unknown header ${header.toLowerCase()}` } },
      header,
    )
  }
  for (const header of [
    'X-Request-ID',
    'X-Forwarded-User',
    'Mcp-Session-Id',
    'X-Version-ID',
    'X-Session-Affinity',
  ])
    t.equal((await send(owner, renaming, header)).status, 200, header)
})

t.test('reading and storing: what is no near miss is named', async t => {
  for (const [request, header] of [
    [reading, 'X-Memory-Colour'],
    [reading, 'X-Memory-Stor'],
    [reading, 'X-Memory-TTL'],
    [listing, 'X-Session-ID'],
    [listing, 'X-User-ID'],
    [preparing, 'X-Memory-Metadata'],
  ] satisfies [Request, string][]) {
    const answer = await send(client, request, header, '10')
    t.match([answer.status, ignoredOf(answer)], [200, header.toLowerCase()], header)
  }
  for (const header of ['X-Memory-Shares', 'X-Memory-Stor', 'X-Memory-TTLs'])
    t.match(await send(client, storing, header), { status: 400 }, header)
})

t.test('model calls: near misses are refused, headers of programs are not judged', async t => {
  const call = (headers: Record<string, string>) =>
    client.send('POST', '/v1/chat/completions', {
      headers: { 'x-provider-key': providerKey('openai'), ...headers },
      body: { model: 'openai/gpt-5', messages },
    })
  const before = provider.requests.length
  for (const header of [
    'X-Memory-Mod',
    'X-Memory-Stor',
    'X-Memory-Usr',
    'X-Memry-Store',
    'X-Session',
    'X-SessionID',
  ])
    t.match(await call({ [header]: 'off' }), {
      status: 400,
      body: { error: { message: /unknown header/ } },
    })
  t.equal(provider.requests.length, before, 'no provider was asked')
  for (const header of [
    'session_id',
    'X-Session-Affinity',
    'X-Parent-Session-Id',
    'X-User-ID',
    'conversation_id',
  ])
    t.equal((await call({ [header]: 'ses_1' })).status, 200, header)
  t.equal(ignoredOf(await call({ 'x-memory-colour': 'red' })), 'x-memory-colour')
  t.equal(ignoredOf(await call({})), null)
})

t.test('400: a user that a program did not fill in, and no vault is made', async t => {
  const vaults = await vaultsOfAccount(backend, account)
  for (const user of [
    '{{user}}',
    '${user}',
    '${USER_ID}',
    '<user_id>',
    '<your user id>',
    '%USER%',
    '$USER',
    '$user_id',
    '{user}',
    '{user.id}',
    '%s',
    '%(user)s',
    '""',
    'default_user_id',
    'anonymous',
    'Unknown',
    'default',
    'undefined',
  ]) {
    t.match(await send(owner, reading, 'X-Memory-User', user), { status: 400 }, user)
    t.match(await owner.post('/v1/keys', { external_id: user }), { status: 400 }, user)
  }
  t.strictSame(await vaultsOfAccount(backend, account), vaults)
  for (const user of ['$5 a day', '100%', '<3', 'a{b}', 'user%40example.com', '$'])
    t.equal((await send(owner, reading, 'X-Memory-User', user)).status, 200, user)
})

t.test('nothing was stored or cleared', async t => {
  for (const vault of await vaultsOfAccount(backend, account))
    t.equal(await countDocuments(backend, vault), 0)
})
