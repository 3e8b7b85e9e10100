import t from 'tap'
import { buildOrg } from '#test/support/start/admin.ts'
import {
  connectDirectory,
  createScimClient,
  patchOf,
  type ScimClient,
} from '#test/support/start/scim.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { admin, key, path, orgKey } = await buildOrg(backend, base)
const { scim, token, id: tokenId } = await connectDirectory(admin, path)
const foreign = await buildOrg(backend, base)
const { scim: foreignScim } = await connectDirectory(foreign.admin, foreign.path)
const ada = (await scim('POST', '/Users', { userName: 'ada@example.com', externalId: 'a' })).body.id
const group = (await scim('POST', '/Groups', { displayName: 'Finance', members: [{ value: ada }] }))
  .body.id

const refused = (status: number, scimType?: string) => ({
  status,
  body: {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    ...(scimType && { scimType }),
    detail: /./,
  },
})
const change = (...operations: object[]) => scim('PATCH', `/Users/${ada}`, patchOf(...operations))

t.test('400: what no directory sends, with its name in RFC 7644', async t => {
  const cases: [string, Promise<unknown>, number, string][] = [
    ['no PatchOp', scim('PATCH', `/Users/${ada}`, { Operations: [] }), 400, 'invalidSyntax'],
    ['no operation', change(), 400, 'invalidSyntax'],
    ['unknown op', change({ op: 'move', path: 'active', value: true }), 400, 'invalidSyntax'],
    ['misspelt path', change({ op: 'replace', path: 'actve', value: false }), 400, 'invalidPath'],
    [
      'misspelt attribute',
      change({ op: 'replace', value: { actve: false } }),
      400,
      'invalidSyntax',
    ],
    ['no path', change({ op: 'remove' }), 400, 'noTarget'],
    ['read only', change({ op: 'replace', path: 'id', value: 'x' }), 400, 'mutability'],
    ['no boolean', change({ op: 'replace', path: 'active', value: 'no' }), 400, 'invalidValue'],
    ['no value', change({ op: 'replace', path: 'active' }), 400, 'invalidValue'],
    ['no name', change({ op: 'remove', path: 'userName' }), 400, 'invalidValue'],
    [
      'no email',
      change({ op: 'add', path: 'emails', value: [{ value: 'x' }] }),
      400,
      'invalidValue',
    ],
    ['no user', scim('POST', '/Users', {}), 400, 'invalidValue'],
    ['a list', scim('POST', '/Users', []), 400, 'invalidSyntax'],
    ['other filter', scim('GET', '/Users?filter=userName sw "a"'), 400, 'invalidFilter'],
    ['other attribute', scim('GET', '/Users?filter=title eq "a"'), 400, 'invalidFilter'],
    ['half a filter', scim('GET', '/Users?filter=userName eq "a'), 400, 'invalidFilter'],
    ['no count', scim('GET', '/Users?count=many'), 400, 'invalidValue'],
    [
      'no member',
      scim('POST', '/Groups', { displayName: 'x', members: [{}] }),
      400,
      'invalidValue',
    ],
  ]
  for (const [what, answer, status, scimType] of cases)
    t.match(await answer, refused(status, scimType), what)
  t.match((await scim('GET', `/Users/${ada}`)).body, { userName: 'ada@example.com', active: true })
})

t.test('409: a name that is taken, in any case', async t => {
  t.match(await scim('POST', '/Users', { userName: 'ADA@example.com' }), refused(409, 'uniqueness'))
  const bob = (await scim('POST', '/Users', { userName: 'Bob' })).body.id
  t.match(await scim('POST', '/Users', { userName: 'bOB' }), refused(409, 'uniqueness'))
  const taken = await scim('PUT', `/Users/${bob}`, { userName: 'Ada@example.com' })
  t.match(taken, refused(409, 'uniqueness'))
  t.match(await scim('POST', '/Groups', { displayName: 'FINANCE' }), refused(409, 'uniqueness'))
  const again = await scim('POST', '/Users', {
    userName: 'ada',
    emails: [{ value: 'ada@example.com' }],
  })
  t.match(again, refused(409, 'uniqueness'), 'an email')
})

t.test('401: every other credential, and a token once it is removed', async t => {
  for (const credential of [key, orgKey, `${token}x`, `mk_scim_${'a'.repeat(32)}`]) {
    const answer = await createScimClient(base, credential)('GET', '/Users')
    t.match(answer, refused(401))
    t.equal(answer.headers.get('www-authenticate'), 'Bearer')
  }
  for (const at of [`${path}/users`, '/v1/memory/stats', '/v1/account/events']) {
    const answer = await fetch(base + at, { headers: { authorization: `Bearer ${token}` } })
    t.equal(answer.status, 401, 'the token opens nothing else')
  }
  const { body: listed } = await admin.get(`${path}/scim-tokens`)
  t.match(listed.tokens, [{ token_id: tokenId, description: 'Okta', last_used_at: Number }])
  t.notMatch(JSON.stringify(listed), token)
  const second = await connectDirectory(admin, path)
  t.equal((await admin.send('DELETE', `${path}/scim-tokens/${second.id}`)).status, 200)
  t.match(await second.scim('GET', '/Users'), refused(401))
  t.equal((await admin.send('DELETE', `${path}/scim-tokens/${second.id}`)).status, 404)
  t.match((await admin.get('/v1/account/events')).body.items.slice(0, 2), [
    { action: 'scim_token.deleted', before: { description: 'Okta' } },
    { action: 'scim_token.created' },
  ])
  t.match(await admin.post(`${path}/scim-tokens`, { expires_at: '2020-01-01' }), { status: 400 })
  const end = Date.now() + 86_400_000
  const ending = await admin.post(`${path}/scim-tokens`, {
    expires_at: new Date(end).toISOString(),
  })
  t.match(ending, { status: 201, body: { expires_at: end } })
  t.equal((await foreign.admin.get(`${path}/scim-tokens`)).status, 404)
})

t.test('404: of another organization nothing is found, told or changed', async t => {
  const asAda: (readonly [method: string, path: string, body?: object | undefined])[] = [
    ['GET', `/Users/${ada}`],
    ['PUT', `/Users/${ada}`, { userName: 'x' }],
    ['PATCH', `/Users/${ada}`, patchOf({ op: 'replace', path: 'active', value: false })],
    ['DELETE', `/Users/${ada}`],
    ['GET', `/Groups/${group}`],
    ['PUT', `/Groups/${group}`, { displayName: 'x' }],
    ['PATCH', `/Groups/${group}`, patchOf({ op: 'replace', path: 'displayName', value: 'x' })],
    ['DELETE', `/Groups/${group}`],
  ]
  const detailOf = async (
    by: ScimClient,
    of: readonly [method: string, path: string, body?: object | undefined],
  ) => {
    const { status, body } = await by(...of)
    return { status, detail: (body.detail as string).replaceAll(/[\da-f-]{36}/g, 'id') }
  }
  for (const request of asAda) {
    const [method, at, body] = request
    const unknown = at.replace(/[^/]+$/, crypto.randomUUID())
    const told = await detailOf(foreignScim, request)
    t.equal(told.status, 404)
    t.same(told, await detailOf(foreignScim, [method, unknown, body]), 'as one that is nowhere')
  }
  for (const list of [
    '/Users',
    '/Groups',
    '/Users?filter=externalId eq "a"',
    `/Users?filter=id eq "${ada}"`,
  ])
    t.match((await foreignScim('GET', list)).body, { totalResults: 0, Resources: [] })
  const joined = { displayName: 'Theirs', members: [{ value: ada }] }
  t.match(await foreignScim('POST', '/Groups', joined), refused(400, 'invalidValue'))
  t.equal((await foreignScim('POST', '/Users', { userName: 'ada@example.com' })).status, 201)
  t.match((await scim('GET', `/Users/${ada}`)).body, { active: true, groups: [{ value: group }] })
})

t.test('pages hold each user once, in one order', async t => {
  const names = Array.from({ length: 7 }, (_, n) => `page-${n}`)
  for (const userName of names) await foreignScim('POST', '/Users', { userName })
  const seen: string[] = []
  for (let startIndex = 1; ; startIndex += 3) {
    const { body } = await foreignScim('GET', `/Users?startIndex=${startIndex}&count=3`)
    t.equal(body.totalResults, 8)
    t.equal(body.itemsPerPage, body.Resources.length)
    if (body.Resources.length === 0) break
    seen.push(...body.Resources.map(({ userName }: { userName: string }) => userName))
  }
  t.same(seen, ['ada@example.com', ...names])
  t.match((await foreignScim('GET', '/Users?count=0')).body, { totalResults: 8, Resources: [] })
  t.match((await foreignScim('GET', '/Users?count=-5&startIndex=-1')).body, { startIndex: 1 })
  const { body } = await foreignScim('GET', '/Users?attributes=userName&count=1')
  t.same(Object.keys(body.Resources[0]), ['schemas', 'id', 'userName', 'meta'])
})

t.test('the service says what it serves', async t => {
  t.match(await scim('POST', '/.search', { filter: 'userName eq "a"' }), {
    status: 501,
    body: { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: '501' },
  })
  const { body: config } = await scim('GET', '/ServiceProviderConfig')
  t.match(config, { patch: { supported: true }, bulk: { supported: false } })
  for (const list of ['Schemas', 'ResourceTypes']) {
    const { body } = await scim('GET', `/${list}`)
    t.equal(body.totalResults, 2)
    for (const { id } of body.Resources) t.match((await scim('GET', `/${list}/${id}`)).body, { id })
    t.match(await scim('GET', `/${list}/none`), refused(404))
  }
  t.match(await scim('GET', '/Me'), refused(404))
  t.match(await scim('DELETE', '/Users'), refused(405))
})
