import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { hashKey } from '#shared/access/key.ts'
import { revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { reviewThreshold } from '#shared/org/review-shared-memory.ts'
import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'
import { deliverDue, startWebhookDelivery } from '#shared/webhooks/deliver.ts'
import { createWebhookSender } from '#shared/webhooks/send.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { processEnvironment, startWorker } from '#test/support/processes.ts'
import { buildTeam, seedTeamMemories } from '#test/support/team.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'
import { startWebhookReceiver, type WebhookReceiver } from '#test/support/webhook-receiver.ts'

t.setTimeout(60_000)

const backend = await createTestBackend(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
const { base } = await startTestApi(t, backend)
await startJobWorkers(backend)
const { query } = backend.postgres
const path = '/v1/account/webhooks'
const sender = createWebhookSender({ allowLoopback: true })
t.teardown(() => sender.close())

const everything = ['operation.finished', 'reflection.suggested', 'review.waiting', 'key.revoked']

/** Sends what is due, whenever its next try is. */
async function deliver(): Promise<void> {
  await query(`update webhook_deliveries set due_at = now() where state = 'pending'`)
  while ((await deliverDue(backend, sender)) > 0);
}

async function subscribed(client: TestClient, receiver: WebhookReceiver, events = everything) {
  const { status, body } = await client.post(path, { url: receiver.url, events })
  t.equal(status, 201)
  return { id: body.id as string, secret: body.secret as string, at: `${path}/${body.id}` }
}

async function user(events = everything) {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const receiver = await startWebhookReceiver(t)
  return { key, client, receiver, ...(await subscribed(client, receiver, events)) }
}

const typesOf = ({ received }: WebhookReceiver): string[] => received.map(({ body }) => body.type)
const exchange = { messages: [{ role: 'user', content: 'my cat is called Ada' }] }

t.test('201: the secret is shown once and stored sealed', async t => {
  const { client, id, at, secret } = await user()
  t.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.match((await client.get(at)).body, { id, active: true, disabled_reason: null })
  t.same(
    (await client.get(path)).body.webhooks.map((webhook: { id: string }) => webhook.id),
    [id],
  )
  t.notMatch(JSON.stringify((await client.get(path)).body), /whsec/)
  t.notMatch(JSON.stringify((await query('select * from webhooks')).rows), secret.slice(6, 30))
})

t.test('400: addresses and events that cannot be', async t => {
  const client = createTestClient(base, await buildKey(backend))
  const events = ['key.revoked']
  for (const body of [
    { url: 'http://example.com/', events },
    { url: 'https://10.0.0.1/', events },
    { url: 'https://169.254.169.254/latest', events },
    { url: 'https://a:b@example.com/', events },
    { url: 'nonsense', events },
    { url: 'https://example.com/', events: [] },
    { url: 'https://example.com/', events: ['memory.stored'] },
    { url: 'https://example.com/', events: ['key.revoked', 'key.revoked'] },
    { events },
  ]) {
    t.equal((await client.post(path, body)).status, 400, JSON.stringify(body))
  }
})

t.test('403, 404: narrowed keys, and webhooks of somebody else', async t => {
  const { key, client, at } = await user()
  t.equal((await createTestClient(base, `${key}:read`).get(path)).status, 403)
  const stranger = createTestClient(base, await buildKey(backend))
  await client.post(`${at}/test`)
  const [delivery] = (await client.get(`${at}/deliveries`)).body.items
  t.equal((await stranger.get(at)).status, 404)
  t.equal((await stranger.send('PATCH', at, { body: { active: false } })).status, 404)
  t.equal((await stranger.send('DELETE', at)).status, 404)
  t.equal((await stranger.post(`${at}/test`)).status, 404)
  t.equal((await stranger.post(`${at}/secret`)).status, 404)
  t.equal((await stranger.get(`${at}/deliveries`)).status, 404)
  t.equal((await stranger.post(`${at}/deliveries/${delivery.id}/replay`)).status, 404)
  const other = await user()
  t.equal((await other.client.post(`${other.at}/deliveries/${delivery.id}/replay`)).status, 404)
  t.equal((await client.get(`${path}/nonsense`)).status, 404)
  t.equal((await client.get(at)).status, 200)
})

t.test('409: an account has at most twenty', async t => {
  const client = createTestClient(base, await buildKey(backend))
  const body = { url: 'https://example.com/', events: ['key.revoked'] }
  const made = await Promise.all(Array.from({ length: 24 }, () => client.post(path, body)))
  t.equal(made.filter(({ status }) => status === 201).length, 20)
  t.equal(made.filter(({ status }) => status === 409).length, 4)
})

t.test('a finished operation is told, signed, and nothing of what was said', async t => {
  const { key, client, receiver, secret } = await user()
  const { body } = await client.post('/v1/memory/ingest?wait=true', exchange)
  await deliver()
  const [told] = receiver.received
  t.match(told!.body, {
    type: 'operation.finished',
    data: {
      operation_id: body.operation_id,
      kind: 'ingest',
      state: 'done',
      key: `${key.slice(0, 6)}…${key.slice(-4)}`,
    },
  })
  t.ok(Math.abs(Date.now() - Date.parse(told!.body.timestamp)) < 60_000)
  const { body: operation } = await client.get(`/v1/operations/${body.operation_id}`)
  const { created_at, finished_at } = told!.body.data
  t.same(
    { created_at, finished_at },
    {
      created_at: operation.created_at,
      finished_at: operation.finished_at,
    },
  )
  t.notMatch(told!.text, /Ada/)
  const verified = new Webhook(secret).verify(told!.text, told!.headers)
  t.same(verified, told!.body)
  t.throws(() => new Webhook(secret).verify(`${told!.text} `, told!.headers))
  await deliver()
  t.equal(receiver.received.length, 1, 'once')
})

t.test('only what is subscribed is written down at all', async t => {
  const { client, id } = await user(['key.revoked'])
  await client.post('/v1/memory/ingest?wait=true', exchange)
  t.same((await query('select 1 from webhook_deliveries where webhook = $1', [id])).rows, [])
})

t.test('cancelled and failed work ends too; what is rolled back never was', async t => {
  const { key, receiver } = await user()
  const { scope, account } = await resolveCaller(backend, key)
  const insert = (id: string) =>
    query(
      `insert into operations (id, account, vault, key_hash, kind, epoch, awaited)
       values ($1, $2, $3, $4, 'upload', 1, false)`,
      [id, account, scope.vault, hashKey(backend.config.keyPepper, key)],
    )
  const [failed, undone] = [crypto.randomUUID(), crypto.randomUUID()]
  await insert(failed)
  await insert(undone)
  const end = `update operations set state = 'failed', finished_at = now() where id = $1`
  await backend.postgres
    .transaction(async tx => {
      await tx.query(end, [undone])
      throw new Error('no')
    })
    .catch(() => {})
  await query(end, [failed])
  await query(`update operations set state = 'done' where id = $1`, [failed])
  await deliver()
  t.same(
    receiver.received.map(({ body }) => [body.data.operation_id, body.data.state]).toSorted(),
    [
      [failed, 'done'],
      [failed, 'failed'],
    ],
  )
})

t.test('consolidation is suggested where the debt says so, and once', async t => {
  const { key, client, receiver } = await user(['reflection.suggested'])
  const { scope } = await resolveCaller(backend, key)
  const owe = (field: string, value: number) =>
    query(`update vaults set ${field} = $2 where id = $1`, [scope.vault, value])
  const suggestion = async () =>
    (await client.post('/v1/memory/date-search', { from: '2026-01-01' })).body.reflection.suggestion
  await owe('raw_tokens', thresholdTokens - 1)
  await deliver()
  t.same([typesOf(receiver), await suggestion()], [[], null])
  await owe('raw_tokens', thresholdTokens)
  await owe('raw_tokens', thresholdTokens + 1)
  await deliver()
  t.match(receiver.received, [{ body: { data: { tier: 1, raw_tokens: thresholdTokens } } }])
  t.match(await suggestion(), /raw/)
  await owe('tier2_importance', thresholdImportance)
  await deliver()
  t.match(receiver.received[1]!.body.data, { tier: 2, tier2_importance: thresholdImportance })
  t.equal(receiver.received.length, 2)
})

t.test('an organization: reviews that wait, keys that end, nothing of private vaults', async t => {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const receiver = await startWebhookReceiver(t)
  await subscribed(admin, receiver)
  const memory = (text: string, confidence: number, reviewed: boolean) => ({
    text,
    confidence,
    reviewed,
  })
  const [unsure] = await seedTeamMemories(backend, team, [
    memory('the launch is in May', reviewThreshold - 0.01, false),
    memory('the office is in Berlin', reviewThreshold, false),
    memory('the floor is three', 0.1, true),
  ])
  const key = await team.addMember('ada@example.com')
  await createTestClient(base, key).post('/v1/memory/ingest?wait=true', exchange)
  await deliver()
  t.match(
    receiver.received.map(({ body }) => body),
    [{ type: 'review.waiting', data: { org_id: team.org, mem_id: unsure, tags: [] } }],
  )
  t.notMatch(receiver.received[0]!.text, /launch/)

  const review = `/v1/orgs/${team.org}/memories/${unsure}/review`
  await admin.post(review, { action: 'approve' })
  await admin.post(`${review}/undo`)
  await deliver()
  t.equal(receiver.received.length, 2, 'it waits again')

  const ended = query('update memory_keys set revoked_at = now() where hash = $1', [
    hashKey(backend.config.keyPepper, key),
  ])
  await ended
  await deliver()
  t.match(receiver.received[2]!.body, {
    type: 'key.revoked',
    data: { kind: 'member', org_id: team.org, key: `${key.slice(0, 6)}…${key.slice(-4)}` },
  })
  t.notMatch(receiver.received[2]!.text, key)
})

t.test('a key that is revoked or rotated is told once', async t => {
  const { client, key, receiver } = await user(['key.revoked'])
  const { account } = await resolveCaller(backend, key)
  const rotated = await client.post('/v1/keys/rotate', { grace_seconds: 0 })
  t.equal(rotated.status, 201)
  const { key: second } = rotated.body
  await deliver()
  t.equal(receiver.received.length, 1)
  const hash = hashKey(backend.config.keyPepper, second as string)
  await revokeKey(query, account, hash)
  await revokeKey(query, account, hash)
  await query('delete from memory_keys where hash = $1', [hash])
  await deliver()
  t.equal(receiver.received.length, 2)
})

t.test(
  'a failure is tried again later, under the same id, and given up after three days',
  async t => {
    const { client, at, receiver, secret } = await user()
    receiver.answer(500)
    await client.post(`${at}/test`)
    while ((await deliverDue(backend, sender)) > 0);
    const [first] = (await client.get(`${at}/deliveries`)).body.items
    t.match(first, { state: 'pending', tries: [{ status: 500, error: 'refused' }] })
    const wait = Date.parse(first.next_try) - Date.now()
    t.ok(wait > 3_000 && wait < 8_000, `the next try is in ${wait} ms`)
    t.type((await client.get(at)).body.failing_since, 'string')
    for (let attempt = 0; attempt < 12; attempt++) await deliver()
    t.match((await client.get(`${at}/deliveries?state=failed`)).body.items, [
      { state: 'failed', next_try: null },
    ])
    t.equal(receiver.received.length, 10)
    t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)

    receiver.answer(204)
    const replayed = await client.post(`${at}/deliveries/${first.id}/replay`)
    t.match(replayed, { status: 202, body: { id: first.id, state: 'pending' } })
    await deliver()
    t.match((await client.get(`${at}/deliveries`)).body.items, [{ state: 'delivered' }])
    t.match((await client.get(at)).body, { failing_since: null, active: true })
    const last = receiver.received.at(-1)!
    t.ok(new Webhook(secret).verify(last.text, last.headers))
  },
)

t.test(
  'switched off: after days of failures, at 410, by its owner; replays need it on',
  async t => {
    const { client, id, at, receiver } = await user()
    receiver.answer(500)
    await client.post(`${at}/test`)
    await deliver()
    await query(`update webhooks set failing_since = now() - interval '6 days' where id = $1`, [id])
    await client.post(`${at}/test`)
    await deliver()
    t.match((await client.get(at)).body, { active: false, disabled_reason: 'failures' })
    const { items } = (await client.get(`${at}/deliveries`)).body
    t.same(
      items.map(({ state }: { state: string }) => state),
      ['failed', 'failed'],
    )
    t.equal((await client.post(`${at}/test`)).status, 409)
    t.equal((await client.post(`${at}/deliveries/${items[0].id}/replay`)).status, 409)
    await client.post('/v1/memory/ingest?wait=true', exchange)
    t.equal((await client.get(`${at}/deliveries`)).body.items.length, 2, 'nothing is written')

    const on = await client.send('PATCH', at, { body: { active: true } })
    t.match(on.body, { active: true, disabled_reason: null, failing_since: null })
    receiver.answer(410)
    await client.post(`${at}/test`)
    await deliver()
    t.match((await client.get(at)).body, { active: false, disabled_reason: 'gone' })
    await client.send('PATCH', at, { body: { active: true, description: 'ours' } })
    const off = await client.send('PATCH', at, { body: { active: false } })
    t.match(off.body, { active: false, disabled_reason: 'owner', description: 'ours' })
  },
)

t.test('for a day a new secret and the one before both sign', async t => {
  const { client, at, receiver, secret, id } = await user()
  const renewed = await client.post(`${at}/secret`)
  t.equal(renewed.status, 200)
  await client.post(`${at}/test`)
  await deliver()
  const [told] = receiver.received
  for (const each of [secret, renewed.body.secret]) {
    t.ok(new Webhook(each).verify(told!.text, told!.headers))
  }
  await query('update webhooks set former_until = now() where id = $1', [id])
  await client.post(`${at}/test`)
  await deliver()
  const later = receiver.received[1]!
  t.throws(() => new Webhook(secret).verify(later.text, later.headers))
  t.ok(new Webhook(renewed.body.secret).verify(later.text, later.headers))
})

t.test('200: the log comes in pages, newest first', async t => {
  const { client, at } = await user()
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift((await client.post(`${at}/test`)).body.id)
  const seen: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 3; pages++) {
    const { body } = await client.get(`${at}/deliveries?limit=2${cursor}`)
    seen.push(...body.items.map(({ id }: { id: string }) => id))
    t.equal(body.has_more, pages < 2)
    cursor = `&cursor=${body.next_cursor}`
  }
  t.same(seen, ids)
  t.equal((await client.get(`${at}/deliveries?cursor=made-up`)).status, 400)
})

t.test('two processes at once send nothing twice; one that dies leaves it to the next', async t => {
  const { client, at, receiver, id } = await user()
  for (let n = 0; n < 20; n++) await client.post(`${at}/test`)
  const drain = async () => {
    while ((await deliverDue(backend, sender)) > 0);
  }
  await Promise.all([drain(), drain(), drain(), drain()])
  t.equal(receiver.received.length, 20)
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 20)

  await client.post(`${at}/test`)
  const dying = AbortSignal.abort()
  await deliverDue(backend, sender, dying)
  const { rows } = await query<{ state: string; attempts: number; later: boolean }>(
    `select state, attempts, due_at > now() + interval '30 seconds' as later
     from webhook_deliveries where webhook = $1 order by created_at desc limit 1`,
    [id],
  )
  t.same(rows, [{ state: 'pending', attempts: 0, later: true }])
  await deliver()
  t.equal(receiver.received.length, 21)
})

t.test('a worker delivers by itself: at once, and again when the next try is due', async t => {
  const { client, at, receiver } = await user()
  const outbox = await startWebhookDelivery(backend)
  t.teardown(() => outbox.close())
  const begun = performance.now()
  await client.post(`${at}/test`)
  await waitUntil('it has arrived', () => receiver.received.length === 1, 3_000)
  t.ok(performance.now() - begun < 3_000)
  receiver.answer(503)
  await client.post(`${at}/test`)
  await waitUntil('it was tried', async () => {
    const { items } = (await client.get(`${at}/deliveries?state=pending`)).body
    return items[0]?.tries.length === 1
  })
  receiver.answer(204)
  await waitUntil('it was tried again', () => receiver.received.length === 3, 12_000)
  await outbox.close()
  await client.post(`${at}/test`)
  await delay(300)
  t.equal(receiver.received.length, 3, 'and not after it was closed')
})

t.test('the worker process does', async t => {
  const { client, at, receiver } = await user()
  const env = { ...processEnvironment(backend.config), WEBHOOK_LOOPBACK: 'on' }
  await startWorker(t, backend.config, env)
  await client.post(`${at}/test`)
  await waitUntil('it has arrived', () => receiver.received.length === 1)
  t.match(receiver.received[0]!.body.type, 'webhook.test')
})

t.test('200: a deleted webhook leaves nothing behind', async t => {
  const { client, at, id } = await user()
  await client.post(`${at}/test`)
  t.match(await client.send('DELETE', at), { status: 200, body: { deleted: true, id } })
  t.same((await query('select 1 from webhook_deliveries where webhook = $1', [id])).rows, [])
  t.equal((await client.send('DELETE', at)).status, 404)
})
