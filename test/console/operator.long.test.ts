import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import { sampleQueues } from '#shared/storage/queue/queue-samples.postgres.ts'
import { look, picture, press, settled, visit } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { alterDatabase } from '#test/support/checks/alter-database.ts'
import { setOperation } from '#test/support/checks/alter-jobs.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const backend = await createTestBackend(t, { env: { RATE_LIMITS: 'on' } })
const { base } = await startTestApi(t, backend)
const { test } = consoleTests(t, base)

test('an operator: from a look at the service to the work that is done again', async (t, {
  open,
}) => {
  const { key } = await buildAdmin(backend, operatorEmail(backend.config))
  const email = 'rosa@orchard.example'
  const client = createTestClient(base, await buildKey(backend, email))
  const { query } = backend.postgres
  // No worker runs: the jobs stay where they are put.
  const ingest = async (): Promise<string> => {
    const messages = [{ role: 'user', content: 'Saxifrage grows on the wall.' }]
    return (await client.post('/v1/memory/ingest', { messages })).body.operation_id
  }
  const stateOf = async (id: string) => (await client.get(`/v1/operations/${id}`)).body.state
  const [first] = [await ingest(), await ingest()]
  const page = await open(key)
  await sampleQueues(query, Date.now())
  await settled(page)
  await visit(page, 'service')
  t.match(await page.locator('main').innerText(), /Requests\s+\d+/)
  await page.goto('/admin/queues')
  const row = page.getByRole('row', { name: /^ingest/ })
  await row.getByText('2', { exact: true }).waitFor()
  await row.getByRole('img', { name: /over 24 hours: at most 2 \(.*\), 2 at last/ }).waitFor()
  await look(t, page, 'queues')
  const third = await ingest()
  await row.getByText('3', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'ingest', exact: true }).click()
  await page.getByRole('img', { name: /^Age of the oldest.*: at most \d+ s/ }).waitFor()
  await press(page, `Show: ${first}`)
  await page
    .getByRole('dialog')
    .getByText(/\(\d+ characters\)/)
    .waitFor()
  t.notMatch(await page.getByRole('dialog').innerText(), /Saxifrage/)
  await picture(page, 'queue-job')
  await press(page, 'Close')
  await press(page, `Cancel: ${first}`)
  await press(page.getByRole('dialog'), 'Cancel it')
  await page.getByText('1 job is cancelled.').waitFor()
  t.equal(await stateOf(first), 'cancelled')

  await query(
    `update pgboss.job set name = name || '.dead', source_name = name, source_retry_count = 10,
       source_output = '{"message": "the model was away"}' where name = 'ingest'`,
  )
  await page.getByRole('link', { name: 'Dead jobs' }).click()
  await page.getByText('the model was away').first().waitFor()
  t.equal(await page.locator('.chip', { hasText: /^dead$/ }).count(), 2)
  await page.getByLabel(`Select: ${third}`).check()
  await look(t, page, 'queue-dead')
  await press(page, 'Put back selected')
  await page.getByText('1 job is put back.').waitFor()
  await press(page, 'Delete all')
  await press(page.getByRole('dialog'), 'Delete')
  await page.getByText('No dead jobs').waitFor()
  t.equal(await stateOf(third), 'accepted')

  // Now they have a worker, which does what was put back.
  await startJobWorkers(backend)
  await visit(page, 'service/tenants')
  await page.getByLabel('Find by email').fill('ORCHARD')
  const tenant = page.getByRole('article')
  await tenant.getByRole('link', { name: `Operations: ${email}` }).click()
  await page.getByRole('heading', { name: 'Operations of the service' }).waitFor()
  await waitUntil('it is done', async () => (await stateOf(third)) === 'done')
  await press(page, 'Refresh')
  await tenant.filter({ hasText: /^\s*done\s+Store what was said/ }).waitFor()
  await settled(page)
  const texts = await tenant.allInnerTexts()
  t.match(texts, [/^done\s+Store/, /Store what was said/, /^cancelled\s+Store/])
  t.notMatch(texts.join(' '), /Saxifrage/)
  await look(t, page, 'service-operations')
  await press(page, 'Not finished or failed')
  await page.getByText('Nothing waits, and nothing has failed').waitFor()
  await page.reload()
  await page.getByText('Nothing waits, and nothing has failed').waitFor()
  const late = await ingest()
  await waitUntil('it is done', async () => (await stateOf(late)) === 'done')
  await setOperation(backend, late, { state: 'failed' })
  await press(page, 'Refresh')
  await tenant.filter({ hasText: /^\s*failed\s+Store what was said\s+rosa@/ }).waitFor()
  t.equal(await tenant.count(), 1, 'what is done is left out by the service')
  t.match(await tenant.innerText(), new RegExp(`alone\\s+Ended just now, outcome \\d+\\s+${late}`))
  await visit(page, 'service/usage')
  await page.locator('.history-bars').first().waitFor()
})

test('an operator: each part of the service with its state', async (t, { open }) => {
  const { key } = await buildAdmin(backend, operatorEmail(backend.config))
  const page = await open(key, 'service')
  await page.getByText(/^All 4 parts answer\. Version \d/).waitFor()
  t.match(await page.locator('main').innerText(), /95 % within\s+[\d.]+ m?s[\s\S]+Without memory/)
  await look(t, page, 'health')
})

test('an operator: an outage of Postgres stands on Health and on every page, and goes by itself', async (t, {
  open,
}) => {
  const { key } = await buildAdmin(backend, operatorEmail(backend.config))
  const page = await open(key, 'service')
  await page.getByText(/^All 4 parts answer/).waitFor()
  const { databaseUrl } = backend.config
  await alterDatabase(databaseUrl, { default_transaction_read_only: 'on' })
  const line = page.getByText(/^1 of 4 parts is not well: Postgres, since \d/)
  await waitUntil('it is told', async () => {
    await press(page, 'Refresh')
    await settled(page)
    return line.isVisible()
  })
  t.match(await page.getByRole('row', { name: /^Postgres/ }).innerText(), /down[^]+takes no writes/)
  await picture(page, 'health-down')
  await page.evaluate(() => (location.hash = '#/orgs'))
  await page.getByRole('alert').locator(line).waitFor()
  await picture(page, 'health-banner')
  await alterDatabase(databaseUrl, { default_transaction_read_only: 'off' })
  await line.waitFor({ state: 'detached' })
})
