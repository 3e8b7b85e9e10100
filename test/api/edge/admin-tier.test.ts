import fc from 'fast-check'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import type { RequestInput } from '#scripts/lab/prove/requests/request-plan.ts'
import { buildRequest, planOf } from '#scripts/lab/prove/requests/requests.ts'
import { mintId } from '#shared/core/ids.ts'
import { addSharedMemories } from '#shared/org/memories/write-shared-memories.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { hostileText, hostileValue } from '#test/support/samples/hostile.ts'
import { sharedVaultOf } from '#test/support/checks/observe.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)

const endpoints = Object.values(contractDocument.endpoints).filter(({ path }) =>
  path.startsWith('/v1/orgs'),
)

type Ids = Record<string, string>

/** A request that every check but that of the ids lets pass. */
const inputOf = (ids: Ids): RequestInput => ({
  word: 'canary',
  foreignWord: 'canary',
  foreignSession: 'session',
  id: kind => ids[kind] ?? `no-${kind}`,
  destination: () => '',
  random: () => 0.5,
  origin: 'https://example.com',
})

/** An organization with one of each thing that has an id. */
async function furnished(): Promise<{ admin: TestClient; ids: Ids; keys: string[] }> {
  const { admin, org, path, orgKey, email } = await buildOrg(backend, base)
  const role = (await admin.post(`${path}/roles`, { name: 'Own' })).body.role_id
  const tag = (await admin.post(`${path}/tags`, { label: 'own' })).body.tag_id
  const key = (await admin.post(`${path}/keys`, { team_member_id: 'own' })).body
  const user = (await admin.get(`${path}/users`)).body.users[0].user_id
  const standard = (await admin.post(`${path}/users/${user}/memory-key`)).body.key
  const place = { org, ...(await sharedVaultOf(backend, org)) }
  const { added } = await addSharedMemories(backend, place, {
    operation: mintId(),
    actor: email,
    items: [
      {
        text: 'A canary',
        tags: [],
        confidence: 0.1,
        author: email,
        reviewed: false,
        acquiredAt: Date.now(),
      },
    ],
  })
  const ids = {
    orgId: org,
    roleId: role,
    tagId: tag,
    keyId: key.id,
    userId: user,
    memId: added[0]!.memory.id,
  }
  return { admin, ids, keys: [key.key_id, standard, orgKey] }
}

t.test('401: to every key but that of an admin, before anything else', async t => {
  const { ids, keys } = await furnished()
  const { memoryKey } = await buildAdmin(backend)
  const others = [
    ...keys,
    `${keys[0]}:read`,
    memoryKey,
    'mk_admin_00000000000000000000000000000000',
  ]
  const paths: [string, string, unknown?][] = [
    ...endpoints.map((endpoint): [string, string, unknown?] => {
      const { path, options } = buildRequest(endpoint, inputOf(ids))
      return [options.method!, path, options.body]
    }),
    ['GET', '/v1/orgs/'],
    ['GET', '/V1/Orgs'],
    ['GET', `/v1/orgs/${ids.orgId}/nothing/here`],
    ['DELETE', '/v1/orgs'],
    ['PUT', `/v1/orgs/${ids.orgId}`],
    ['OPTIONS', '/v1/orgs'],
    ['POST', '/v1/orgs', '{"name": '],
    ['POST', '/v1/orgs', {}],
    ['GET', '/v1/orgs/%00/keys'],
    ['GET', '/v1/orgs/%E0%A4%A/keys'],
  ]
  const answers = new Set<string>()
  for (const [n, [method, path, body]] of paths.entries()) {
    for (const [k, key] of others.entries()) {
      // Each key in each header, at one path of three.
      const header = [
        { authorization: `Bearer ${key}` },
        { 'x-admin-key': key },
        { 'x-memory-key': key, 'idempotency-key': 'x'.repeat(300) },
      ][(n + k) % 3]
      const response = await fetch(base + path, {
        method,
        headers: {
          ...(header as Record<string, string>),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && {
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
      })
      answers.add(`${response.status} ${await response.text()}`)
    }
  }
  t.equal(answers.size, 1, 'the same words for all')
  t.match([...answers][0], /^401 \{"error":"This needs an admin credential"/)
})

t.test('404: an id of another admin in a body, in the bytes of one that nobody has', async t => {
  const mine = await furnished()
  const theirs = await furnished()
  const before = await snapshotOf(theirs)
  const inBodies: [string, string, unknown, unknown][] = [
    ['POST', 'role-assignments', { team_member_id: 'x' }, { role_ids: theirs.ids.roleId }],
    ['POST', 'users', { email: 'x@example.com' }, { role_ids: theirs.ids.roleId }],
    ['POST', 'role-assignments', { role_ids: [] }, { key_id: theirs.ids.keyId }],
    ['POST', 'role-assignments', { role_ids: [] }, { key_id: theirs.keys[0] }],
  ]
  for (const [method, path, rest, id] of inBodies) {
    const [[field, value]] = Object.entries(id as object) as [[string, string]]
    const send = async (id: string) => {
      const body = { ...(rest as object), [field]: field === 'role_ids' ? [id] : id }
      const answer = await mine.admin.send(method, `/v1/orgs/${mine.ids.orgId}/${path}`, { body })
      return `${answer.status} ${JSON.stringify(answer.body)}`
    }
    const unknown = value.startsWith('mk_') ? `mk_org_${'0'.repeat(32)}` : mintId()
    t.match(await send(value), /^404 /)
    t.equal(await send(value), await send(unknown), `${path} ${field}`)
  }
  t.strictSame(await snapshotOf(theirs), before, 'nothing of theirs has changed')
})

/** Everything an organization can be asked for, as its owner sees it. */
async function snapshotOf({ admin, ids }: { admin: TestClient; ids: Ids }): Promise<unknown[]> {
  const { orgId } = ids
  const parts = ['', '/keys', '/roles', '/users', '/tags', '/instructions', '/memories', '/audit']
  return Promise.all(parts.map(async part => (await admin.get(`/v1/orgs/${orgId}${part}`)).body))
}

t.test('hostile ids, bodies and queries get no 500 and reach nobody else', async t => {
  const mine = await furnished()
  const theirs = await furnished()
  const before = await snapshotOf(theirs)
  const fields = ['name', 'allowed_tags', 'email', 'role_ids', 'team_member_id', 'label', 'custom']
  const harmless = endpoints.filter(
    ({ operation, method }) => method !== 'DELETE' && operation !== 'seedMemories',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...harmless),
      hostileText,
      fc.dictionary(fc.constantFrom(...fields, 'anti_rules', 'processor_provider'), hostileValue, {
        maxKeys: 3,
      }),
      fc.boolean(),
      async (endpoint, text, fuzz, inPath) => {
        const ids = { ...mine.ids }
        const names = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
        if (inPath && names.length > 0) ids[names.at(-1)!] = encoded(text) || 'x'
        const query = `?q=${encoded(text)}&limit=${encoded(text)}`
        const input = inputOf(ids)
        const [target] = buildRequest(endpoint, input).path.split('?')
        const path = target + (endpoint.method === 'GET' ? query : '')
        const body = { ...(planOf(endpoint).body?.(input) as object | undefined), ...fuzz }
        const { status } = await mine.admin.send(endpoint.method, path, {
          ...(endpoint.method !== 'GET' && { body }),
        })
        if (status >= 500) throw new Error(`${status} ${endpoint.method} ${path}`)
      },
    ),
    { numRuns: 200 },
  )
  t.strictSame(await snapshotOf(theirs), before)
})

/** A path segment of any text; a lone surrogate cannot be sent at all. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed()).slice(0, 2_000)

t.test('stored texts come back as they were said', async t => {
  const { admin, path } = await buildOrg(backend, base)
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }).filter(isLine),
      async name => {
        const { status, body: role } = await admin.post(`${path}/roles`, {
          name,
          allowed_tags: [name],
        })
        if (status === 409) return
        const written = name.normalize('NFC').trim()
        if (written === '') return void t.equal(status, 400)
        t.strictSame(role.name, written)
        t.strictSame(role.allowed_tags, [written])
        const { body: tag } = await admin.post(`${path}/tags`, {
          label: 'x',
          question: name,
          examples: [name],
        })
        t.strictSame([tag.question, tag.examples], [name, [name]])
        await admin.send('DELETE', `${path}/tags/${tag.tag_id}`)
        await admin.send('DELETE', `${path}/roles/${role.role_id}`)
      },
    ),
    { numRuns: 30, examples: [["Robert'); drop table org_roles; --"], ['{"$gt": ""}'], ['{a,b}']] },
  )
})

// oxlint-disable-next-line no-control-regex -- control characters are what names may not hold
const isLine = (text: string): boolean => !/[\u0000-\u001F\u007F-\u009F]/.test(text)
