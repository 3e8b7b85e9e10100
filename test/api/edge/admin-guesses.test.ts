import t from 'tap'
import { createApp } from '#api/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'

const adminSecret = 'break-the-glass-please'
const backend = await createTestBackend(t, {
  env: { ADMIN_SECRET: adminSecret, ADMIN_EMAIL: 'root@example.com' },
})
const guesses = 5
/** Statements that look up an admin. */
let lookups = 0
const { query } = backend.postgres
const counted: typeof query = (text, values, name) => {
  if (/admin_keys|from accounts where email/.test(text)) lookups++
  return query(text, values, name)
}

/** An application of its own; every request comes from one address. */
async function newApi(): Promise<string> {
  const postgres = { ...backend.postgres, query: counted }
  const app = createApp(
    { ...backend, postgres },
    {
      key: [{ points: 20, seconds: 60 }],
      address: [{ points: guesses, seconds: 60 }],
    },
  )
  await query('delete from rate_points')
  return listen(t, createHttpServer(app))
}

const policyOf = (base: string, headers: Record<string, string>) =>
  createTestClient(base, '').send('GET', '/v1/account/policy', { headers })

t.test(
  'guesses from an address are refused before they are looked up, the right one too',
  async t => {
    const base = await newApi()
    const key = await buildKey(backend)
    for (let n = 0; n < guesses; n++)
      t.equal((await policyOf(base, { 'x-admin-key': `wrong ${n}` })).status, 401)
    lookups = 0
    for (const credential of ['wrong again', adminSecret]) {
      const refused = await policyOf(base, { 'x-admin-key': credential })
      t.equal(refused.status, 429, credential)
      t.match(refused.headers.get('retry-after'), /^\d+$/)
      t.equal((await policyOf(base, { authorization: `Bearer ${credential}` })).status, 429)
    }
    t.equal(lookups, 0)
    t.equal(
      (await policyOf(base, { authorization: `Bearer ${key}` })).status,
      200,
      'a key is served',
    )
    t.equal((await policyOf(base, { 'x-memory-key': key, authorization: 'Bearer x' })).status, 200)
  },
)

t.test(
  'guesses beside a valid Memory Key are charged to the address; the key is served',
  async t => {
    const base = await newApi()
    const key = await buildKey(backend)
    const send = (credential: string) =>
      policyOf(base, { 'x-memory-key': key, authorization: `Bearer ${credential}` })
    for (let n = 0; n < guesses; n++) t.equal((await send(`wrong-${n}`)).status, 200)
    lookups = 0
    t.equal((await send('wrong-again')).status, 200)
    t.equal((await policyOf(base, { 'x-admin-key': 'wrong' })).status, 429)
    t.equal((await policyOf(base, { 'x-admin-key': adminSecret })).status, 429)
    t.equal(lookups, 0)
  },
)

t.test('requests without any credential lock no admin out', async t => {
  const base = await newApi()
  for (let n = 0; n < 2 * guesses; n++) await policyOf(base, {})
  t.equal((await policyOf(base, {})).status, 429)
  t.equal((await policyOf(base, { 'x-admin-key': adminSecret })).status, 200)
})

t.test('keys that a user’s key mints share its limit; those of an owner’s key do not', async t => {
  const base = await newApi()
  const ownerKey = await buildKey(backend)
  const mint = async (by: string, path = '/v1/keys'): Promise<string> => {
    const { status, body } = await createTestClient(base, by).post(path, {})
    t.equal(status, 201)
    return body.key as string
  }
  const userKey = await mint(ownerKey)
  const second = await mint(userKey)
  const third = await mint(second)
  const rotated = await mint(third, '/v1/keys/rotate')
  const statuses: number[] = []
  for (let n = 0; n < 24; n++) {
    const key = [userKey, second, rotated][n % 3]!
    statuses.push((await createTestClient(base, key).get('/v1/memory/stats')).status)
  }
  // Three of the twenty were spent on minting and rotating.
  t.equal(statuses.filter(status => status === 200).length, 17)
  t.ok(statuses.slice(17).every(status => status === 429))
  t.equal((await createTestClient(base, ownerKey).get('/v1/memory/stats')).status, 200)
  const other = await mint(ownerKey)
  t.equal((await createTestClient(base, other).get('/v1/memory/stats')).status, 200)
})
