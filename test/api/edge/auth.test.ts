import t from 'tap'
import { hashKey, mintKey } from '#shared/access/key.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { sendRaw } from '#test/support/start/raw-http.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { expireKey } from '#test/support/checks/alter.ts'

const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
const key = await buildKey(backend, 'ada@example.com')
const other = await buildKey(backend)
const { base, send } = await startTestApi(t, backend)
const port = Number(new URL(base).port)

const unknown = mintKey('vault')
/** The status that a set of headers opens or closes the door with. */
const knock = async (headers: Record<string, string>) =>
  (await send('GET', '/v1/memory/stats', { headers })).status
const hashOf = (raw: string): Buffer => hashKey(config.keyPepper, raw)
const accountOf = async (raw: string): Promise<string> =>
  (await resolveCaller(backend, raw)).account

t.test('200: three styles of header, the scheme in any case', async t => {
  for (const headers of [
    { authorization: `Bearer ${key}` },
    { authorization: `bearer ${key}` },
    { authorization: `BEARER   ${key}  ` },
    { 'x-api-key': key },
    { 'x-api-key': ` ${key} ` },
    { 'x-memory-key': key },
    { 'x-memory-key': `${key}:read` },
    { 'x-memory-key': key, authorization: 'Bearer sk-a-provider-key' },
    { 'x-memory-key': key, 'x-api-key': key, authorization: `Bearer ${key}` },
    { 'x-memory-key': key, authorization: 'Basic YTpi' },
  ]) {
    t.equal(await knock(headers as Record<string, string>), 200, Object.keys(headers).join(' '))
  }
})

t.test('401: no key, or not one of ours, or more than one', async t => {
  for (const headers of [
    {},
    { authorization: key },
    { authorization: `Basic ${key}` },
    { authorization: `Bearer ${key} extra` },
    { authorization: 'Bearer' },
    { authorization: 'Bearer sk-a-provider-key' },
    { 'x-api-key': `Bearer ${key}` },
    { 'x-memory-key': `${key},${key}` },
    { 'x-memory-key': `${key}:admin` },
    { 'x-memory-key': `${key}:` },
    { 'x-memory-key': `${key}:read:write` },
    { 'x-memory-key': `${key}:READ` },
    { 'x-memory-key': key.slice(0, -1) },
    { 'x-memory-key': `${key}a` },
    { 'x-memory-key': key.toLowerCase() },
    { 'x-memory-key': `mk_${'a'.repeat(5_000)}` },
    { 'x-memory-key': "mk_' or 1=1 --" },
    { 'x-memory-key': 'mk_é\u0080ÿ' },
    { 'x-memory-key': key, 'x-api-key': other },
    { 'x-memory-key': key, authorization: `Bearer ${unknown}` },
    { 'x-memory-key': unknown, 'x-api-key': key },
    { 'x-memory-key': key, 'x-api-key': 'mk_nonsense' },
    { 'x-memory-key': key, 'x-api-key': `${key}:wrong` },
  ]) {
    t.equal(
      await knock(headers as Record<string, string>),
      401,
      JSON.stringify(headers).slice(0, 80),
    )
  }
  for (const where of [`/v1/memory/stats?key=${key}`, `/v1/memory/stats?api_key=${key}`]) {
    t.equal((await send('GET', where)).status, 401, 'a key in the query opens nothing')
  }
})

t.test('401: the same header twice with different keys', async t => {
  for (const name of ['Authorization: Bearer ', 'X-Memory-Key: ', 'x-api-key: ']) {
    const twice = (first: string, second: string) =>
      sendRaw(
        port,
        [`GET /v1/memory/stats HTTP/1.1\r\nHost: x\r\n${name}${first}\r\n${name}${second}\r\n\r\n`],
        { answersMax: 1 },
      )
    t.equal((await twice(key, other)).answers[0]?.status, 401, name)
    t.equal((await twice(other, `${key}:read`)).answers[0]?.status, 401, name)
  }
})

t.test('401: two Authorization headers, an admin credential first', async t => {
  const { key: adminKey } = await buildAdmin(backend, operatorEmail(config))
  for (const path of [
    '/v1/account/policy',
    '/v1/account/admin-keys',
    '/v1/account/events',
    '/v1/operator/usage',
    '/v1/orgs',
    '/metrics',
  ]) {
    const bearer = (...credentials: string[]) =>
      credentials.map(each => `Authorization: Bearer ${each}\r\n`).join('')
    const ask = async (headers: string) =>
      (
        await sendRaw(port, [`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`], {
          answersMax: 1,
        })
      ).answers[0]?.status
    t.equal(await ask(bearer(adminKey)), 200, path)
    t.equal(await ask(bearer(adminKey, key)), 401, path)
    t.equal(await ask(bearer(adminKey, adminKey)), 401, path)
  }
})

t.test('the same key with two suffixes may do what both allow', async t => {
  const body = { messages: [{ role: 'user', content: 'hello' }] }
  const question = { query: 'hello', limit: 1 }
  for (const [one, two, stores, reads] of [
    [key, key, true, true],
    [`${key}:read`, key, false, true],
    [key, `${key}:read`, false, true],
    [key, `${key}:write`, true, false],
    [`${key}:write`, `${key}:read`, false, false],
    [key, `${key}:off`, false, false],
  ] as const) {
    const headers = { 'x-memory-key': one, 'x-api-key': two }
    const name = `${one.slice(key.length)} and ${two.slice(key.length)}`
    const stored = await send('POST', '/v1/memory/ingest', { headers, body })
    t.match(stored, { status: 202, body: { accepted: stores } }, `storing with ${name}`)
    const found = await send('POST', '/v1/memory/search', { headers, body: question })
    t.equal(found.status, 200)
    const listed = await send('GET', '/v1/memory/list', { headers })
    t.equal(listed.status, reads ? 200 : 403, `reading with ${name}`)
  }
})

t.test('401: wrong keys of every kind are answered alike', async t => {
  const revoked = await buildKey(backend)
  await revokeKey(backend.postgres.query, await accountOf(revoked), hashOf(revoked))
  const expired = await buildKey(backend)
  await expireKey(backend, hashOf(expired))
  const heard = new Set<string>()
  for (const wrong of [
    unknown,
    revoked,
    expired,
    'mk_',
    'mk_x',
    `${key}:nothing`,
    mintKey('admin'),
  ]) {
    const { status, headers, body } = await send('GET', '/v1/memory/stats', {
      headers: { 'x-memory-key': wrong },
    })
    const kept = [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
    heard.add(JSON.stringify([status, kept, body]))
  }
  t.equal(heard.size, 1, [...heard].join('\n'))
  t.notMatch([...heard][0], /mk_[A-Za-z0-9]/)
})

t.test('POST /v1/keys: who may, and what is made', async t => {
  const mint = (headers: Record<string, string>, body: unknown = {}) =>
    send('POST', '/v1/keys', { headers, body })
  const made = await mint({ 'x-memory-key': key }, { name: 'Büro 日記' })
  t.equal(made.status, 201)
  t.match(made.body, { key: /^mk_[A-Za-z0-9]{32}$/, name: 'Büro 日記' })
  t.equal(await accountOf(made.body.key), await accountOf(key), 'of the same account')
  t.equal(await knock({ 'x-memory-key': made.body.key }), 200)
  t.match((await mint({ 'x-memory-key': key })).body, { name: 'New Key' })

  for (const suffix of ['read', 'write', 'off']) {
    t.equal((await mint({ 'x-memory-key': `${key}:${suffix}` })).status, 403, suffix)
  }
  const { admin, path } = await buildOrg(backend, base)
  const { body: member } = await admin.post(`${path}/keys`, { team_member_id: 'ann' })
  t.equal((await mint({ 'x-memory-key': member.key_id })).status, 403, 'a member key')
  t.equal((await mint({})).status, 401)
  t.equal((await mint({ 'x-memory-key': mintKey('admin') })).status, 401, 'mk_admin proves nothing')
  const past = { expires_at: '2001-01-01T00:00:00Z' }
  t.equal((await mint({ 'x-memory-key': key }, past)).status, 400)
})

t.test('404: stats are for keys of the same account, whatever the spelling', async t => {
  const sibling = (await send('POST', '/v1/keys', { headers: { 'x-api-key': key }, body: {} })).body
    .key
  const ask = (path: string) =>
    send('GET', `/v1/memory/${path}/stats`, { headers: { 'x-memory-key': key } })
  t.equal((await ask(key)).status, 200)
  t.equal((await ask(`${key}:off`)).status, 200, 'its suffix does not count')
  t.equal((await ask(sibling)).status, 200, 'a key of the same account')
  const foreign = await ask(other)
  t.equal(foreign.status, 404)
  t.same((await ask(unknown)).body, foreign.body, 'a foreign key is as if it were not there')
  t.notMatch(JSON.stringify(foreign.body), other)
})

t.test('no error repeats a key, wherever it was put', async t => {
  const headers = { 'x-memory-key': key }
  const body = { query: 'x', limit: 1 }
  for (const [method, path, options] of [
    ['GET', `/v1/${other}`, {}],
    ['GET', `/${other}`, { headers }],
    ['POST', `/${other}`, { headers, body: {} }],
    ['GET', `/v1/memory/stats`, { headers: { authorization: `Bearer ${other}x` } }],
    ['POST', '/v1/memory/prepare', { headers, body: { messages: [], density: other } }],
    [
      'POST',
      '/v1/memory/prepare',
      { headers, body: { messages: [{ role: 'user' }], density: other } },
    ],
    ['POST', '/v1/memory/search', { headers, body: { ...body, limit: other } }],
    ['POST', '/v1/memory/search', { headers, body: { ...body, embeddings: other } }],
    ['POST', '/v1/memory/search', { headers, body: { ...body, embeddings: `openai/${other}` } }],
    [
      'POST',
      '/v1/memory/search',
      { headers: { ...headers, 'x-session-id': other.repeat(9) }, body },
    ],
    ['POST', `/v1/memory/ingest?wait=${other}`, { headers, body: {} }],
    ['DELETE', `/v1/operations/${other}`, { headers }],
    ['PUT', `/v1/account/provider-keys/${other}`, { headers, body: { key: other } }],
  ] as const) {
    const { status, body: answer } = await send(method, path, options)
    t.ok(status >= 400 && status < 500, `${method} ${path.replace(other, '…')}: ${status}`)
    t.notMatch(JSON.stringify(answer), other, `${method} ${path.replace(other, '…')}`)
  }
  const unknown = { headers, body: { ...body, [other]: 1 } }
  const named = (await send('POST', '/v1/memory/search', unknown)).headers
  t.match(named.get('x-memory-ignored-fields'), /^mk_/)
  t.notMatch(named.get('x-memory-ignored-fields'), other)
})

t.test('401: the error of a key without its scheme says so', async t => {
  for (const authorization of [key, ` ${key}:read`]) {
    const { status, body } = await send('GET', '/v1/memory/stats', { headers: { authorization } })
    t.equal(status, 401)
    t.match(body, { error: /has no scheme/, hint: /"Authorization: Bearer/ })
    t.notMatch(JSON.stringify(body), key)
  }
  t.match((await send('GET', '/v1/memory/stats', { headers: {} })).body.error, /No Memory Key/)
})
