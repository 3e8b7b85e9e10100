import t from 'tap'
import { sampleQueues } from '#shared/storage/queue/queue-samples.postgres.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { look, picture, press, settled } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildAdmin } from '#test/support/admin.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

// The limits of a service in use: looking at the console must fit into them.
const backend = await createTestBackend(t, { env: { RATE_LIMITS: 'on' } })
const { base } = await startTestApi(t, backend)
const { test } = consoleTests(t, base)

test('what signing in and charts load is less than 160 kB, and looked at again next to nothing', async (t, {
  page,
  bytes,
}) => {
  await page.goto('/console')
  await settled(page)
  const door = await bytes()
  // The largest part that is loaded when it is asked for.
  await page.evaluate(`import('/console/lib/uplot.js').then(() => undefined)`)
  await settled(page)
  const all = await bytes()
  t.ok(door > 20_000 && all < 160_000, `${door} bytes to sign in, ${all} in all`)
  await page.reload()
  await settled(page)
  t.ok((await bytes()) - all < 2_000, 'the files are known by their tags')
  t.equal((await fetch(`${base}/console`)).status, 200, 'and cost no address its points')
})

test('the reference is as dark as the browser', async (t, { page }) => {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.goto('/docs')
    await page.getByText('/v1/memory/search').first().waitFor()
    const color = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    t.equal(color === 'rgb(28, 32, 34)', colorScheme === 'dark', `${colorScheme}: ${String(color)}`)
    await settled(page)
  }
})

test('the reference begins with five calls, finds by words, and keeps the key for the tab', async (t, {
  page,
}) => {
  await page.goto('/docs')
  const operations = page.locator('.opblock')
  await operations.first().waitFor()
  t.equal(await operations.count(), 5, 'the other groups are folded')
  await page.getByPlaceholder('Find by word or path').fill('consolidate commit')
  await page.waitForFunction(() => document.querySelectorAll('.opblock').length !== 5)
  const paths = await page.locator('.opblock-summary-path').allTextContents()
  t.match(paths.join(' ').replaceAll('\u200B', ''), '/v1/memory/consolidate/commit')
  t.notMatch(paths.join(' '), '/v1/keys')
  await page.locator('.authorize').first().click()
  await page.locator('.auth-container input').first().fill('mk_of_this_tab')
  await page.locator('.auth-container button[type=submit]').first().click()
  await page.reload()
  await page
    .locator('.authorize.locked, .authorize .locked, .btn.authorize.locked')
    .first()
    .waitFor()
})

test('guides are read in both themes and on a phone', async (t, { page }) => {
  for (const path of ['/guides', '/guides/start', '/guides/api', '/guides?q=key']) {
    await page.goto(path)
    await look(t, page, path.replaceAll(/\W/g, '-'))
  }
})

test('an operator looks into the queues, cancels a job, and puts dead ones back', async (t, {
  open,
}) => {
  const { key } = await buildAdmin(backend, operatorEmail(backend.config))
  const client = createTestClient(base, await buildKey(backend))
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
})
