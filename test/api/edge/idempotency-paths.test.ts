import t from 'tap'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { tablesHolding } from '#test/support/checks/observe.ts'

/** An Idempotency-Key belongs to a route, however its path is written: so do erasures of stored answers. */

const backend = await createTestBackend(t)
await startJobWorkers(backend, 'clear', 'delete-ids')
const { base } = await startTestApi(t, backend)
const again = { 'idempotency-key': 'again' }

/** A POST to any spelling of a path: the test client knows those of the contract only. */
async function postSpelling(key: string, path: string, body: object, headers: object = again) {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as object }
}

const asks: [string, string, object][] = [
  ['/v1/memory/search', '/V1/memory/Search', { query: 'otter', limit: 3 }],
  [
    '/v1/memory/prepare',
    '/v1/memory/prepare/',
    { messages: [{ role: 'user', content: 'which otter sings?' }] },
  ],
  ['/v1/memory/date-search', '/v1/Memory/date-search/', { from: '2020-01-01' }],
]

t.test('every spelling of a path gets the first answer, and 400 for another body', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'one otter sings' }])
  const { post } = createTestClient(base, key)
  const first = await postSpelling(key, '/V1/memory/Consolidate/checkout/', { tier: 1 })
  t.match(first, { status: 200, body: {} })
  t.match(JSON.stringify(first.body), /one otter sings/)
  await insertMemories(backend, key, [{ text: 'another otter sings' }])
  t.strictSame((await post('/v1/memory/consolidate/checkout', { tier: 1 }, again)).body, first.body)
  const other = { tier: 1, max_tokens: 1_000 }
  t.equal((await post('/v1/memory/consolidate/checkout', other, again)).status, 400)
})

t.test('no spelling answers with deleted memories', async t => {
  const key = await buildKey(backend)
  const { post, send } = createTestClient(base, key)
  const preview = { destination_key: await buildKey(backend), dry_run: true }
  const all: typeof asks = [...asks, ['/v1/memory/transfer', '/v1/memory/Transfer/', preview]]
  const remove = {
    single: (id: string) => post('/v1/memory/delete-ids', { ids: [id] }),
    all: () => send('DELETE', '/v1/memory'),
  }
  for (const [how, removeIt] of Object.entries(remove)) {
    const [id] = await insertMemories(backend, key, [{ text: 'one otter sings' }])
    const headers = { 'idempotency-key': how }
    const answers = () =>
      Promise.all(
        all.map(async ([, spelling, body]) =>
          JSON.stringify((await postSpelling(key, spelling, body, headers)).body),
        ),
      )
    for (const answer of await answers()) t.match(answer, /otter sings|"count":1/)
    t.match(await removeIt(id!), { status: 200 })
    for (const answer of await answers()) t.notMatch(answer, /otter sings|"count":1/)
  }
})

t.test('ids count in any spelling: a removed organization leaves no answer', async t => {
  const { admin, key, org, path } = await buildOrg(backend, base)
  const upper = `/v1/Orgs/${org.toUpperCase()}`
  const first = await postSpelling(key, `${upper}/roles/`, { name: 'Singer' })
  t.equal(first.status, 201)
  t.strictSame((await admin.post(`${path}/roles`, { name: 'Singer' }, again)).body, first.body)
  const encoded = `/v1/orgs/%${org.charCodeAt(0).toString(16)}${org.slice(1)}/roles`
  t.strictSame((await postSpelling(key, encoded, { name: 'Singer' })).body, first.body)
  const stored = () => tablesHolding(backend, `orgs/${org}/`, ['public.idempotency'])
  t.same(await stored(), ['public.idempotency'])
  t.match(await admin.send('DELETE', `/v1/orgs/${org.toUpperCase()}`), { status: 200 })
  t.same(await stored(), [])
})

t.test('ids of one organization are not those of another', async t => {
  const { key } = await buildAdmin(backend)
  const admin = createTestClient(base, key)
  const paths = []
  for (const name of ['One', 'Two']) {
    paths.push(`/v1/orgs/${(await admin.post('/v1/orgs', { name })).body.org_id}/roles`)
  }
  const roles = []
  for (const path of paths) {
    roles.push((await admin.post(path, { name: 'Singer' }, again)).body.role_id)
  }
  t.equal(new Set(roles).size, 2)
})
