import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { tablesHolding } from '#test/support/checks/observe.ts'
import { startWebhookReceiver } from '#test/support/doubles/webhook-receiver.ts'
import { deliverPending, webhooksPath } from '#test/support/doubles/webhook-subscriber.ts'
import { Seal } from '#shared/core/seal.ts'
import { isSameUrl, openUrl, sealUrl } from '#shared/events/webhooks/webhook.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { env: { WEBHOOK_LOOPBACK: 'on' }, jobs: [] })
const secret = 'T04QX7Kq9vZ2bR8sLmNw'

/** A webhook whose address is a secret, as that of many products is. */
async function buildSecretWebhook(t: Parameters<typeof startWebhookReceiver>[0]) {
  const client = createTestClient(base, await buildKey(backend))
  const receiver = await startWebhookReceiver(t)
  const url = `${receiver.url}/services/${secret}?token=${secret}`
  const { status, body } = await client.post(
    webhooksPath,
    { url, events: ['key.revoked'] },
    { 'idempotency-key': 'once' },
  )
  t.equal(status, 201)
  t.equal(body.url, url)
  return { client, receiver, url, id: body.id as string, at: `${webhooksPath}/${body.id}` }
}

t.test('an address stands nowhere in clear, is answered and sent to', async t => {
  const { client, receiver, url, at } = await buildSecretWebhook(t)
  t.same(await tablesHolding(backend, secret), [])
  t.equal((await client.get(at)).body.url, url)
  t.equal((await client.get(webhooksPath)).body.webhooks[0].url, url)
  await client.post(`${at}/test`)
  await deliverPending(backend)
  t.equal(receiver.received[0]?.path, `/hook/services/${secret}?token=${secret}`)
  t.same(await tablesHolding(backend, secret), [])
})

t.test('another address is sealed too; the same one is no change', async t => {
  const { client, url, at } = await buildSecretWebhook(t)
  const changes = async () =>
    (await client.get('/v1/account/events')).body.items.filter(
      ({ action }: { action: string }) => action === 'webhook.changed',
    ).length
  t.equal((await client.send('PATCH', at, { body: { url } })).body.url, url)
  t.equal(await changes(), 0)
  const other = `${url}&more=${secret}`
  t.equal((await client.send('PATCH', at, { body: { url: other } })).body.url, other)
  t.equal(await changes(), 1)
  t.same(await tablesHolding(backend, secret), [])
})

t.test('a sealed address opens for its own webhook and with its master key alone', async t => {
  const seal = new Seal([{ id: 'one', key: Buffer.alloc(32, 1) }])
  const url = 'https://example.com/hooks?token=1'
  const sealed = sealUrl(seal, 'a', url)
  t.equal(openUrl(seal, 'a', sealed), url)
  t.throws(() => openUrl(seal, 'b', sealed), /can no longer be opened/)
  const other = new Seal([{ id: 'two', key: Buffer.alloc(32, 2) }])
  t.throws(() => openUrl(other, 'a', sealed), /can no longer be opened/)
  t.equal(isSameUrl(other, 'a', sealed, url), false, 'it can be replaced')
})
