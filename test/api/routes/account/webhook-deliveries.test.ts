import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { insertDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'
import { deliverWebhook, sendMissingDeliveryJobs } from '#shared/events/webhooks/deliver.ts'
import { startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { buildSubscriber, deliverPending } from '#test/support/doubles/webhook-subscriber.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import {
  completeDeliveryJob,
  endFormerSecret,
  insertDelivery,
  makeJobsDue,
  postponeDelivery,
  setDeliveryDue,
  setFailingDays,
} from '#test/support/checks/alter-jobs.ts'
import { deliveryJobs, deliveryRow } from '#test/support/checks/observe-jobs.ts'
import { allJobsBut, readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, {
  env: { WEBHOOK_LOOPBACK: 'on' },
  jobs: allJobsBut('webhook'),
})

const deliver = () => deliverPending(backend)
const user = (events?: string[]) => buildSubscriber(t, backend, base, events)

const exchange = { messages: [{ role: 'user', content: 'my cat is called Ada' }] }

t.test(
  'a failure is tried again later, under the same id, and given up after three days',
  async t => {
    const { client, at, receiver, secret } = await user()
    receiver.answer(500)
    const { id: delivery } = (await client.post(`${at}/test`)).body
    const before = Date.now()
    const snooze = await deliverWebhook(backend, { delivery })
    const after = Date.now()
    const [first] = (await client.get(`${at}/deliveries`)).body.items
    t.match(first, { state: 'pending', tries: [{ status: 500, error: 'refused' }] })
    const next = Date.parse(first.next_try)
    t.ok(next > before + 4_000 && next < after + 7_000, `tried ${before}, next ${first.next_try}`)
    t.ok(snooze!.snoozeSeconds >= 5 && snooze!.snoozeSeconds <= 6, 'and its job is snoozed for it')
    await setDeliveryDue(backend, delivery, 10)
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
    await setFailingDays(backend, id, 6)
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

t.test('what was written while its webhook was switched off is given up unsent', async t => {
  const { key, client, at, receiver } = await user()
  const { account } = await resolveCaller(backend, key)
  const [late] = await backend.postgres.transaction(async tx => {
    const written = await insertDeliveries(tx.query, [{ account, event: 'key.revoked', data: {} }])
    t.equal((await client.send('PATCH', at, { body: { active: false } })).status, 200)
    return written
  })
  t.same(await deliveryRow(backend, late!.id), { state: 'pending', attempts: 0, isDue: true })
  t.equal(await deliverWebhook(backend, { delivery: late!.id }), undefined, 'its job ends')
  t.match(await deliveryRow(backend, late!.id), { state: 'failed', attempts: 0 })
  t.equal(receiver.received.length, 0)
})

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
  await endFormerSecret(backend, id)
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
  const pages = await readPages<{ id: string }>(client, `${at}/deliveries?limit=2`)
  t.equal(pages.length, 3)
  t.same(
    pages.flat().map(({ id }) => id),
    ids,
  )
})

t.test('a send that is cut off is no try, and is repeated', async t => {
  const { client, at, receiver } = await user()
  const { id: delivery } = (await client.post(`${at}/test`)).body
  const stopped = AbortSignal.abort()
  await t.rejects(deliverWebhook(backend, { delivery }, stopped), 'so that its job is tried again')
  t.same(await deliveryRow(backend, delivery), { state: 'pending', attempts: 0, isDue: true })
  t.equal(await deliverWebhook(backend, { delivery }), undefined)
  t.equal(receiver.received.length, 1)
})

t.test(
  'a message has one job; a replay makes a waiting one due and replaces an ended one',
  async t => {
    const { client, at, receiver } = await user()
    const { id: delivery } = (await client.post(`${at}/test`)).body
    t.match(await deliveryJobs(backend, delivery), [{ state: 'created' }])
    await postponeDelivery(backend, delivery)
    const replay = `${at}/deliveries/${delivery}/replay`
    t.equal((await client.post(replay)).status, 202)
    const [job, ...others] = await deliveryJobs(backend, delivery)
    t.ok(job!.inSeconds <= 0, `due in ${job!.inSeconds} s`)
    t.same(others, [])

    await deliver()
    await completeDeliveryJob(backend, delivery)
    t.equal((await client.post(replay)).status, 202)
    t.equal((await client.post(replay.replace(delivery, delivery.toUpperCase()))).status, 202)
    t.equal((await deliveryJobs(backend, delivery)).length, 1, 'however its id is written')
    t.equal((await deliveryJobs(backend, delivery.toUpperCase())).length, 0)
    t.equal(receiver.received.length, 1)
  },
)

t.test('a due message without a job gets one from the sweep, and no second one', async t => {
  const { id } = await user()
  const due = await insertDelivery(backend, id, 0)
  const later = await insertDelivery(backend, id, 60)
  await sendMissingDeliveryJobs(backend)
  await sendMissingDeliveryJobs(backend)
  t.equal((await deliveryJobs(backend, due)).length, 1)
  t.equal((await deliveryJobs(backend, later)).length, 0, 'its next try is in an hour')
})

t.test('two services send each message once, and again when its next try is due', async t => {
  const { client, at, receiver } = await user()
  const another = await createTestBackend(t, { config: backend.config })
  for (const one of [backend, another]) await startJobWorkers(one, 'webhook')
  await client.post(`${at}/test`)
  await waitUntil('it has arrived', () => receiver.received.length === 1)
  t.match(receiver.received[0]!.body.type, 'webhook.test')

  await Promise.all(Array.from({ length: 20 }, () => client.post(`${at}/test`)))
  await waitUntil('all have arrived', () => receiver.received.length === 21)
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 21)

  receiver.answerNext(503)
  const { id } = (await client.post(`${at}/test`)).body
  await waitUntil('it has failed', async () => (await deliveryRow(backend, id)).attempts === 1)
  await setDeliveryDue(backend, id, 0)
  await waitUntil('it is delivered', async () => {
    await makeJobsDue(backend, 'webhook')
    return (await deliveryRow(backend, id)).state === 'delivered'
  })
  t.equal(receiver.received.length, 23)
  const [last] = (await client.get(`${at}/deliveries?limit=1`)).body.items
  t.match(last, { id, state: 'delivered', tries: [{ status: 503 }, { status: 204 }] })
})
