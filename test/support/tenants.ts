import { createHash, randomBytes } from 'node:crypto'
import { mintId } from '#shared/core/ids.ts'
import { buildKey, createTestClient, type TestClient } from '#test/support/api.ts'
import type { Backend } from '#shared/backend.ts'

/** A tenant with resources of all kinds; each contains a word that is unique to the tenant. */
export type Tenant = {
  key: string
  client: TestClient
  /** The unique word, in every text, session, query and name of this tenant. */
  canary: string
  session: string
  /** Ids of a raw memory of the core and of a reflection. */
  raw: string
  reflection: string
  /** A leased batch. */
  batch: string
  /** Ended operations. */
  operation: string
  graft: string
  webhook: string
  /** A delivery of the webhook. */
  delivery: string
  listCursor: string
  operationsCursor: string
  keysCursor: string
  /** The id of a key. */
  keyId: string
  sessionsCursor: string
  eventsCursor: string
}

/** Ids of the same form that do not exist. */
export type MissingTenant = Omit<Tenant, 'client' | 'canary' | 'graft'>

export const createMissingTenant = (): MissingTenant => ({
  key: `mk_${randomBytes(16).toString('hex')}`,
  session: 'missing session',
  raw: mintId(),
  reflection: mintId(),
  batch: mintId(),
  operation: mintId(),
  webhook: mintId(),
  delivery: mintId(),
  listCursor: 'bm90aGluZw.bm90aGluZw',
  operationsCursor: 'bm90aGluZw.bm90aGluZw',
  keysCursor: 'bm90aGluZw.bm90aGluZw',
  keyId: mintId(),
  sessionsCursor: 'bm90aGluZw.bm90aGluZw',
  eventsCursor: 'bm90aGluZw.bm90aGluZw',
})

let tenants = 0

/**
 * A word of this tenant alone, the same in every run: the words of a query decide what is found in the vault
 * that is searched.
 */
const nextCanary = (): string =>
  `canary${createHash('sha256').update(`tenant ${++tenants}`).digest('hex').slice(0, 10)}`

/** Creates a tenant; workers must be running. */
export async function buildTenant(backend: Backend, base: string): Promise<Tenant> {
  const canary = nextCanary()
  const session = `session of ${canary}`
  const key = await buildKey(backend, `${canary}@example.com`)
  const client = createTestClient(base, key)
  const { post } = client
  const exchangeOf = (content: string) => ({ messages: [{ role: 'user', content, name: canary }] })
  const ingest = '/v1/memory/ingest?wait=true'
  const { body: exchange } = await post(ingest, exchangeOf(`${canary} keeps a key under the mat`))
  await post(ingest, { ...exchangeOf(`${canary} is on a journey`), session_id: session })
  const batch = await checkOut(client)
  const commit = { batch_id: batch, entries: [{ text: `${canary} trusts mats`, importance: 5 }] }
  const { body: committed } = await post('/v1/memory/consolidate/commit', commit)
  await client.send('POST', '/v1/memory/upload', {
    headers: { 'content-type': 'application/x-ndjson' },
    body: `{"content":"${canary} came in a file"}\n{"content":"x","${canary}":1}`,
  })
  const own = (await post('/v1/keys', { name: `key of ${canary}` })).body.key
  const queries = [`where does ${canary} keep it`]
  const copied = await post('/v1/memory/graft', { destination_key: own, queries, threshold: 0.1 })
  const apiKey = { key: `sk-${canary}` }
  await client.send('PUT', '/v1/account/provider-keys/groq', { body: apiKey })
  const subscription = {
    url: `https://${canary}.example.com/hook`,
    events: ['operation.finished'],
    description: canary,
  }
  const webhook = (await post('/v1/account/webhooks', subscription)).body.id
  const delivery = (await post(`/v1/account/webhooks/${webhook}/test`)).body.id
  const { body: list } = await client.get('/v1/memory/list?limit=1')
  const { body: operations } = await client.get('/v1/operations?limit=1')
  const { body: keys } = await client.get('/v1/keys?limit=1')
  await post(ingest, { ...exchangeOf(`${canary} is back`), session_id: `another ${session}` })
  const { body: sessions } = await client.get('/v1/memory/sessions?limit=1')
  const { body: events } = await client.get('/v1/account/events?limit=1')
  return {
    key,
    client,
    canary,
    session,
    raw: await rawOf(client),
    reflection: committed.created[0].id,
    batch: await checkOut(client),
    operation: exchange.operation_id,
    graft: copied.body.operation_id,
    webhook,
    delivery,
    listCursor: list.next_cursor,
    operationsCursor: operations.next_cursor,
    keysCursor: keys.next_cursor,
    keyId: keys.items[0].id,
    sessionsCursor: sessions.next_cursor,
    eventsCursor: events.next_cursor,
  }
}

const checkOut = async ({ post }: TestClient): Promise<string> =>
  (await post('/v1/memory/consolidate/checkout', { tier: 1 })).body.batch_id

const rawOf = async ({ get }: TestClient): Promise<string> =>
  (await get('/v1/memory/list?tier=1&limit=1')).body.items[0].memory_id
