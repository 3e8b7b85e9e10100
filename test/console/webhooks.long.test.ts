import t from 'tap'
import { look, press } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startWebhookReceiver } from '#test/support/doubles/webhook-receiver.ts'
import { deliverPending, webhooksPath } from '#test/support/doubles/webhook-subscriber.ts'

const backend = await createTestBackend(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const { test } = consoleTests(t, api.base)

test('webhooks: made, tested, replayed, switched off and deleted', async (t, { open }) => {
  const receiver = await startWebhookReceiver(t)
  const page = await open(key, 'webhooks')
  await page.getByText('No webhook yet').waitFor()
  await press(page, 'New webhook')
  await page.getByRole('dialog').getByLabel('Address').fill(receiver.url)
  await page.getByRole('dialog').getByLabel('A key has ended').uncheck()
  await press(page, 'Create')
  t.match(await page.locator('.secret').innerText(), /^whsec_/)
  await press(page, 'I have copied it')
  await page.getByRole('link', { name: /^Deliveries/ }).waitFor()
  const [webhook] = (await api.get(webhooksPath)).body.webhooks
  t.same(webhook.events.toSorted(), [
    'budget.used_up',
    'budget.warning',
    'operation.finished',
    'reflection.suggested',
    'review.waiting',
  ])
  await look(t, page, 'webhooks')

  await page.getByRole('link', { name: /^Deliveries/ }).click()
  await page.getByText('No messages yet').waitFor()
  t.match(new URL(page.url()).hash, `#/webhooks/${webhook.id}`)
  receiver.answer(500)
  await press(page, 'Send a test')
  const row = page.locator('article', { hasText: 'Test' })
  await row.getByText('waiting').waitFor()
  await deliverPending(backend)
  await press(page, 'Refresh')
  await row.locator('.line-main').getByText(/500/).waitFor()
  await look(t, page, 'webhook-failing')
  receiver.answer(204)
  await deliverPending(backend)
  await press(page, 'Refresh')
  await row.getByText('delivered', { exact: true }).waitFor()
  await press(row, /^Send again/)
  await row.getByText('waiting').waitFor()
  await deliverPending(backend)
  t.equal(receiver.received.length, 3)
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
  await page.getByLabel('State').selectOption('failed')
  await page.getByText('No messages yet').waitFor()

  const active = async () => (await api.get(`${webhooksPath}/${webhook.id}`)).body.active
  await press(page, 'Switch off')
  await page.getByText('switched off', { exact: true }).waitFor()
  await waitUntil('it is off', async () => !(await active()))
  await press(page, 'Delete')
  await press(page.getByRole('dialog'), 'Delete')
  await page.getByText('No webhook yet').waitFor()
  t.same((await api.get(webhooksPath)).body.webhooks, [])
})

test('webhooks: an address that may not be used says why', async (t, { open }) => {
  const page = await open(key, 'webhooks')
  await press(page, 'New webhook')
  await page.getByRole('dialog').getByLabel('Address').fill('https://user:word@example.com/hook')
  await press(page, 'Create')
  t.match(await page.getByRole('alert').innerText(), /url|credentials/)
})
