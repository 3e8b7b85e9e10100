import { revokeAccountKey } from '#shared/accounts/revoke-key.ts'
import { mintId } from '#shared/core/ids.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import { finishOperation } from '#shared/operations/operation-rows.postgres.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { cancelOperation } from '#shared/vault/delete/cancel.ts'
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { hashKey } from '#shared/access/key.ts'
import { reviewThreshold } from '#shared/org/review-threshold.ts'
import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'
import { jobNames } from '#shared/domain/jobs.ts'
import { deliverWebhook, sendMissingDeliveryJobs } from '#shared/webhooks/deliver.ts'
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

t.setTimeout(120_000)

const backend = await createTestBackend(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
const { base } = await startTestApi(t, backend)
await startJobWorkers(backend, ...jobNames.filter(name => name !== 'webhook'))
const { query } = backend.postgres
const path = '/v1/account/webhooks'

const everything = ['operation.finished', 'reflection.suggested', 'review.waiting', 'key.revoked']

/** Sends every pending message once, whenever its next try is. */
async function deliver(): Promise<void> {
  const { rows } = await query<{ id: string }>(
    `update webhook_deliveries set due_at = now() where state = 'pending' returning id`,
  )
  await Promise.all(rows.map(({ id }) => deliverWebhook(backend, { delivery: id })))
}

const jobsOf = async (delivery: string) =>
  (
    await query<{ state: string; inSeconds: number }>(
      `select state, extract(epoch from start_after - now())::float8 as "inSeconds"
       from pgboss.job where name = 'webhook' and singleton_key = $1 and state < 'completed'`,
      [delivery],
    )
  ).rows

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
  const [failed, undone, cancelled] = [mintId(), mintId(), mintId()]
  await insert(failed)
  await insert(undone)
  const { postgres, queue } = backend
  await postgres
    .transaction(async tx => {
      await failOperations(tx, queue, [undone])
      throw new Error('no')
    })
    .catch(() => {})
  await postgres.transaction(tx => failOperations(tx, queue, [failed, failed]))
  const outcome = { kind: 'expire', expired: 0 } as const
  await postgres.transaction(tx => finishOperation(tx, queue, failed, outcome))
  await insert(cancelled)
  await cancelOperation(backend, account, cancelled)
  await deliver()
  t.same(
    receiver.received.map(({ body }) => [body.data.operation_id, body.data.state]).toSorted(),
    [
      [failed, 'done'],
      [failed, 'failed'],
      [cancelled, 'cancelled'],
    ],
  )
})

t.test('consolidation is suggested where the debt says so, and once', async t => {
  const { key, client, receiver } = await user(['reflection.suggested'])
  const { scope } = await resolveCaller(backend, key)
  const owe = (debt: DebtChange) => changeVault(backend.postgres, scope.vault, [], debt)
  const suggestion = async () =>
    (await client.post('/v1/memory/date-search', { from: '2026-01-01' })).body.reflection.suggestion
  await owe({ rawTokens: thresholdTokens - 1 })
  await deliver()
  t.same([typesOf(receiver), await suggestion()], [[], null])
  await owe({ rawTokens: 1 })
  await owe({ rawTokens: 1 })
  await deliver()
  t.match(receiver.received, [{ body: { data: { tier: 1, raw_tokens: thresholdTokens } } }])
  t.match(await suggestion(), /raw/)
  await owe({ tier2Importance: thresholdImportance })
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

  await admin.send('DELETE', `/v1/orgs/${team.org}/keys/${key}`)
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
  const { rows } = await query<{ id: string }>('select id from memory_keys where hash = $1', [hash])
  const requester = { account, actor: 'test', keyHash: Buffer.alloc(32) }
  const revocation = { id: rows[0]!.id, erase: false, operation: mintId() }
  await revokeAccountKey(backend, requester, revocation)
  await revokeAccountKey(backend, requester, revocation)
  await deliver()
  t.equal(receiver.received.length, 2)
})

t.test(
  'a failure is tried again later, under the same id, and given up after three days',
  async t => {
    const { client, at, receiver, secret } = await user()
    receiver.answer(500)
    const { id: delivery } = (await client.post(`${at}/test`)).body
    const snooze = await deliverWebhook(backend, { delivery })
    const [first] = (await client.get(`${at}/deliveries`)).body.items
    t.match(first, { state: 'pending', tries: [{ status: 500, error: 'refused' }] })
    const wait = Date.parse(first.next_try) - Date.now()
    t.ok(wait > 3_000 && wait < 8_000, `the next try is in ${wait} ms`)
    t.ok(snooze!.snoozeSeconds >= 5 && snooze!.snoozeSeconds <= 6, 'and its job is snoozed for it')
    t.match(await deliverWebhook(backend, { delivery }), { snoozeSeconds: Number }, 'not before')
    t.equal(receiver.received.length, 1)
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

t.test('a send that is cut off is no try, and is repeated', async t => {
  const { client, at, receiver } = await user()
  const { id: delivery } = (await client.post(`${at}/test`)).body
  const stopped = AbortSignal.abort()
  await t.rejects(deliverWebhook(backend, { delivery }, stopped), 'so that its job is tried again')
  const { rows } = await query(
    `select state, attempts, due_at <= now() as due from webhook_deliveries where id = $1`,
    [delivery],
  )
  t.same(rows, [{ state: 'pending', attempts: 0, due: true }])
  t.equal(await deliverWebhook(backend, { delivery }), undefined)
  t.equal(receiver.received.length, 1)
})

t.test(
  'a message has one job; a replay makes a waiting one due and replaces an ended one',
  async t => {
    const { client, at, receiver } = await user()
    const { id: delivery } = (await client.post(`${at}/test`)).body
    t.match(await jobsOf(delivery), [{ state: 'created' }])
    await query(
      `update pgboss.job set start_after = now() + interval '1 day' where singleton_key = $1`,
      [delivery],
    )
    const replay = `${at}/deliveries/${delivery}/replay`
    t.equal((await client.post(replay)).status, 202)
    const [job, ...others] = await jobsOf(delivery)
    t.ok(job!.inSeconds <= 0, `due in ${job!.inSeconds} s`)
    t.same(others, [])

    await deliver()
    await query(`update pgboss.job set state = 'completed' where singleton_key = $1`, [delivery])
    t.equal((await client.post(replay)).status, 202)
    t.equal((await jobsOf(delivery)).length, 1)
    t.equal(receiver.received.length, 1)
  },
)

t.test('a due message without a job gets one from the sweep, and no second one', async t => {
  const { id } = await user()
  const { rows } = await query<{ id: string }>(
    `insert into webhook_deliveries (webhook, event, data, due_at)
     values ($1, 'webhook.test', '{}', now()),
            ($1, 'webhook.test', '{}', now() + interval '1 hour') returning id`,
    [id],
  )
  await sendMissingDeliveryJobs(backend)
  await sendMissingDeliveryJobs(backend)
  t.equal((await jobsOf(rows[0]!.id)).length, 1)
  t.equal((await jobsOf(rows[1]!.id)).length, 0, 'its next try is in an hour')
})

t.test(
  'two worker processes send each message once, and again when its next try is due',
  async t => {
    const { client, at, receiver } = await user()
    const env = { ...processEnvironment(backend.config), WEBHOOK_LOOPBACK: 'on' }
    await Promise.all([1, 2].map(() => startWorker(t, backend.config, env)))
    const start = performance.now()
    await client.post(`${at}/test`)
    await waitUntil('it has arrived', () => receiver.received.length === 1, 5_000)
    t.ok(performance.now() - start < 5_000)
    t.match(receiver.received[0]!.body.type, 'webhook.test')

    await Promise.all(Array.from({ length: 20 }, () => client.post(`${at}/test`)))
    await waitUntil('all have arrived', () => receiver.received.length === 21)
    t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 21)

    receiver.answer(503)
    await client.post(`${at}/test`)
    await waitUntil('it was tried', async () => {
      const { items } = (await client.get(`${at}/deliveries?state=pending`)).body
      return items[0]?.tries.length === 1
    })
    receiver.answer(204)
    await waitUntil('it was tried again', () => receiver.received.length === 23, 15_000)
    await waitUntil('it is delivered', async () => {
      const { items } = (await client.get(`${at}/deliveries?state=pending`)).body
      return items.length === 0
    })
  },
)

t.test('200: a deleted webhook leaves nothing behind', async t => {
  const { client, at, id } = await user()
  await client.post(`${at}/test`)
  t.match(await client.send('DELETE', at), { status: 200, body: { deleted: true, id } })
  t.same((await query('select 1 from webhook_deliveries where webhook = $1', [id])).rows, [])
  t.equal((await client.send('DELETE', at)).status, 404)
})
