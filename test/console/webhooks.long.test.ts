import t from 'tap'
import { look, noBrowser, openBrowser, openTab, signIn, visit } from '#test/console/browser.ts'
import { buildKey, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { startWebhookReceiver } from '#test/support/webhook-receiver.ts'
import { deliverPending, webhooksPath } from '#test/support/webhook-subscriber.ts'

const skip = noBrowser
const backend = await createTestBackend(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const browser = skip ? null : await openBrowser(t)

t.test('webhooks: made, tested, replayed, switched off and deleted', { skip }, async t => {
  const receiver = await startWebhookReceiver(t)
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'webhooks')
  await page.getByText('No webhook yet').waitFor()
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByRole('dialog').getByLabel('Address').fill(receiver.url)
  await page.getByRole('dialog').getByLabel('A key has ended').uncheck()
  await page.getByRole('button', { name: 'Create' }).click()
  t.match(await page.locator('.secret').innerText(), /^whsec_/)
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await page.getByRole('link', { name: /^Deliveries/ }).waitFor()
  const [webhook] = (await api.get(webhooksPath)).body.webhooks
  t.same(webhook.events.toSorted(), [
    'operation.finished',
    'reflection.suggested',
    'review.waiting',
  ])
  await look(t, page, 'webhooks')

  await page.getByRole('link', { name: /^Deliveries/ }).click()
  await page.getByText('No messages yet').waitFor()
  t.match(new URL(page.url()).hash, `#/webhooks/${webhook.id}`)
  receiver.answer(500)
  await page.getByRole('button', { name: 'Send a test' }).click()
  const row = page.locator('article', { hasText: 'webhook.test' })
  await row.getByText('waiting').waitFor()
  await deliverPending(backend)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await row.getByText(/: 500/).waitFor()
  await look(t, page, 'webhook-failing')
  receiver.answer(204)
  await deliverPending(backend)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await row.getByText('delivered', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Send again/ }).click()
  await row.getByText('waiting').waitFor()
  await deliverPending(backend)
  t.equal(receiver.received.length, 3)
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
  await page.getByLabel('State').selectOption('failed')
  await page.getByText('No messages yet').waitFor()

  const active = async () => (await api.get(`${webhooksPath}/${webhook.id}`)).body.active
  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByText('switched off', { exact: true }).waitFor()
  await waitUntil('it is off', async () => !(await active()))
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No webhook yet').waitFor()
  t.same((await api.get(webhooksPath)).body.webhooks, [])
  t.same(faults, [])
})

t.test('webhooks: an address that may not be used says why', { skip }, async t => {
  const { page } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'webhooks')
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByRole('dialog').getByLabel('Address').fill('https://user:word@example.com/hook')
  await page.getByRole('button', { name: 'Create' }).click()
  t.match(await page.getByRole('alert').innerText(), /url|credentials/)
})
