import t from 'tap'
import { revokeAccountKey } from '#shared/accounts/account-keys.ts'
import { mintId } from '#shared/core/ids.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import {
  cancelAcceptedOperation,
  finishOperation,
  failOperations,
} from '#shared/operations/operations.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { Webhook } from 'standardwebhooks'
import { hashKey } from '#shared/access/key.ts'
import { reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'
import { thresholdImportance, thresholdTokens } from '#shared/vault/consolidate/debt.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import {
  startWebhookReceiver,
  type WebhookReceiver,
} from '#test/support/doubles/webhook-receiver.ts'
import {
  buildSubscriber,
  deliverPending,
  subscribe,
  webhooksPath as path,
} from '#test/support/doubles/webhook-subscriber.ts'
import { insertOperation } from '#test/support/checks/alter-jobs.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { webhookDeliveriesOf } from '#test/support/checks/observe-jobs.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { allJobsBut, startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t, {
  env: { WEBHOOK_LOOPBACK: 'on' },
  jobs: allJobsBut('webhook'),
})

const deliver = () => deliverPending(backend)
const user = (events?: string[]) => buildSubscriber(t, backend, base, events)

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
  t.notMatch(await tableText(backend, 'webhooks'), secret.slice(6, 30))
})

t.test('400: addresses that cannot be', async t => {
  const client = await newClient()
  const events = ['key.revoked']
  for (const body of [
    { url: 'http://example.com/', events },
    { url: 'https://10.0.0.1/', events },
    { url: 'https://169.254.169.254/latest', events },
    { url: 'https://a:b@example.com/', events },
    { url: 'nonsense', events },
  ]) {
    t.equal((await client.post(path, body)).status, 400, JSON.stringify(body))
  }
})

t.test('409: an account has at most twenty', async t => {
  const client = await newClient()
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
  t.ok(isSinceStart(told!.body.timestamp))
  const { body: operation } = await client.get(`/v1/operations/${body.operation_id}`)
  const { created_at, finished_at } = told!.body.data
  t.same(
    { created_at, finished_at },
    {
      created_at: operation.created_at,
      finished_at: operation.finished_at,
    },
  )
  // A masked key has letters by chance.
  t.notMatch(told!.text, /\bAda\b/)
  const verified = new Webhook(secret).verify(told!.text, told!.headers)
  t.same(verified, told!.body)
  t.throws(() => new Webhook(secret).verify(`${told!.text} `, told!.headers))
  await deliver()
  t.equal(receiver.received.length, 1, 'once')
})

t.test('only what is subscribed is written down at all', async t => {
  const { client, id } = await user(['key.revoked'])
  await client.post('/v1/memory/ingest?wait=true', exchange)
  t.same(await webhookDeliveriesOf(backend, id), [])
})

t.test('cancelled and failed work ends too; what is rolled back never was', async t => {
  const { key, receiver } = await user()
  const { scope, account } = await resolveCaller(backend, key)
  const keyHash = hashKey(backend.config.keyPepper, key)
  const insert = (id: string) =>
    insertOperation(backend, { id, account, vault: scope.vault, keyHash, kind: 'upload' })
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
  await postgres.transaction(tx => cancelAcceptedOperation(tx, queue, account, cancelled))
  await deliver()
  t.same(
    receiver.received.map(({ body }) => [body.data.operation_id, body.data.state]).toSorted(),
    [
      [failed, 'done'],
      [failed, 'failed'],
      [cancelled, 'cancelled'],
    ].toSorted(),
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
  await subscribe(admin, receiver)
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
  const { items } = (await createTestClient(base, rotated.body.key).get('/v1/keys')).body
  const { id } = items.find(({ current }: { current: boolean }) => current)
  await deliver()
  t.equal(receiver.received.length, 1)
  const requester = { account, actor: 'test', keyHash: Buffer.alloc(32) }
  const revocation = { id, erase: false, operation: mintId() }
  await revokeAccountKey(backend, requester, revocation)
  await revokeAccountKey(backend, requester, revocation)
  await deliver()
  t.equal(receiver.received.length, 2)
})

t.test('200: a deleted webhook leaves nothing behind', async t => {
  const { client, at, id } = await user()
  await client.post(`${at}/test`)
  t.match(await client.send('DELETE', at), { status: 200, body: { deleted: true, id } })
  t.same(await webhookDeliveriesOf(backend, id), [])
  t.equal((await client.send('DELETE', at)).status, 404)
})
