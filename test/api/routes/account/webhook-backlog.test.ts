import t from 'tap'
import { deliverWebhook } from '#shared/events/webhooks/deliver.ts'
import { giveUpDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'
import { holdRow, untilWaiting } from '#test/support/checks/held-rows.ts'
import { buildSubscriber } from '#test/support/doubles/webhook-subscriber.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { env: { WEBHOOK_LOOPBACK: 'on' }, jobs: [] })
const { query } = backend.postgres

/** A webhook with this many messages that are due in an hour. */
async function newBacklog(count: number) {
  const subscriber = await buildSubscriber(t, backend, base)
  // In statements that are short on a busy machine.
  for (let rest = count; rest > 0; rest -= 2_000) {
    await query(
      `insert into webhook_deliveries (webhook, event, data, due_at)
       select $1, 'webhook.test', '{}', now() + interval '1 hour' from generate_series(1, $2::int)`,
      [subscriber.id, Math.min(rest, 2_000)],
    )
  }
  const of = `select from webhook_deliveries where webhook = $1 and state = 'pending'`
  const countPending = async () => (await query(of, [subscriber.id])).rowCount
  return { ...subscriber, countPending }
}

t.test('what waits for a webhook is given up in parts', async t => {
  const { client, at, countPending } = await newBacklog(10_003)
  const active = await newBacklog(1)
  t.equal((await client.send('PATCH', at, { body: { active: false } })).status, 200)
  t.equal(await countPending(), 3)
  t.equal(await giveUpDeliveries(query), 3)
  t.equal(await giveUpDeliveries(query), 0)
  t.equal(await countPending(), 0)
  t.equal(await active.countPending(), 1, 'that of others stays')
})

t.test(
  'what waited for a webhook is not sent when it is on again before all is given up',
  async t => {
    const { client, at, countPending } = await newBacklog(10_003)
    t.equal((await client.send('PATCH', at, { body: { active: false } })).status, 200)
    t.equal(await countPending(), 3)
    t.equal((await client.send('PATCH', at, { body: { active: true } })).status, 200)
    t.equal(await countPending(), 0)
  },
)

t.test('what waits for a webhook that is on stays when that is asked again', async t => {
  const { client, at, countPending } = await newBacklog(1)
  t.equal((await client.send('PATCH', at, { body: { active: true } })).status, 200)
  t.equal(await countPending(), 1)
})

t.test('a webhook goes with a log of any size', async t => {
  const { client, at, id } = await newBacklog(20_001)
  t.equal((await client.send('DELETE', at)).status, 200)
  t.equal((await client.get(at)).status, 404)
  const { rowCount } = await query('select from webhook_deliveries where webhook = $1', [id])
  t.equal(rowCount, 0)
  t.equal((await client.send('DELETE', at)).status, 404)
})

t.test('so is what waits for one that is gone', async t => {
  const { client, at, receiver, countPending } = await newBacklog(10_003)
  receiver.answer(410)
  const { id: delivery } = (await client.post(`${at}/test`)).body
  t.equal(await deliverWebhook(backend, { delivery }), undefined)
  t.match((await client.get(at)).body, { active: false, disabled_reason: 'gone' })
  t.equal(await countPending(), 3)
  t.equal(await giveUpDeliveries(query), 3)
})

t.test('what is delivered while it is switched off stays delivered', async t => {
  const { client, at, id } = await newBacklog(1)
  const delivered = `with delivered as (
      update webhook_deliveries set state = 'delivered' where webhook = $1
    ) select from webhooks where id = $1 for update`
  const release = await holdRow(t, backend, delivered, id)
  const switchedOff = client.send('PATCH', at, { body: { active: false } })
  await untilWaiting(backend, 1)
  await release()
  t.equal((await switchedOff).status, 200)
  const { rows } = await query('select state from webhook_deliveries where webhook = $1', [id])
  t.same(rows, [{ state: 'delivered' }])
})
