import t from 'tap'
import { look, press, settled } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

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
    const lightness = Number(/oklch\(([\d.]+)/.exec(String(color))![1])
    t.equal(lightness < 0.5, colorScheme === 'dark', `${colorScheme}: ${String(color)}`)
    await settled(page)
  }
})

test('the reference begins with five calls, finds by words, and keeps the key for the tab', async (t, {
  page,
}) => {
  await page.goto('/docs')
  const operations = page.locator('.operation:visible')
  await operations.first().waitFor()
  t.equal(await operations.count(), 5, 'the other groups are folded')
  await look(t, page, 'docs')
  await page.getByPlaceholder('Find by word or path').fill('consolidate commit')
  await page.waitForFunction(() => document.querySelectorAll('.operation').length < 5)
  const paths = (await operations.locator('summary > code').allTextContents()).join(' ')
  t.match(paths, '/v1/memory/consolidate/commit')
  t.notMatch(paths, '/v1/keys')
  await page.getByLabel(/^Key, until/).fill('mk_of_this_tab')
  await page.reload()
  t.equal(await page.getByLabel(/^Key, until/).inputValue(), 'mk_of_this_tab')
})

test('the reference tries a call, and is drawn without holding the page', async (t, {
  page,
  bytes,
}) => {
  const key = await buildKey(backend)
  await page.goto('/docs')
  await page.getByLabel(/^Key, until/).fill(key)
  const row = page.locator('.operation', { hasText: '/v1/memory/search' }).first()
  await row.locator('summary').first().click()
  await press(row, 'Send')
  await row.getByRole('status').getByText('200', { exact: true }).waitFor()
  t.match(await row.getByRole('status').innerText(), /"memories": \[\]/)
  await look(t, page, 'docs-call')
  t.match(page.url(), /#\/Start%20here\/search$/)
  t.ok((await bytes()) < 200_000, `${await bytes()} bytes`)
  await page.getByPlaceholder('Find by word or path').fill('erase')
  await page.getByText(/^\d+ calls\. Each|, \d+ calls\. Each/).waitFor()
  await page.getByText('/v1/account/users/{externalId}').waitFor()
})

test('guides are read in both themes and on a phone', async (t, { page }) => {
  for (const path of ['/guides', '/guides/start', '/guides/endpoints', '/guides?q=key']) {
    await page.goto(path)
    await look(t, page, path.replaceAll(/\W/g, '-'))
  }
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.goto('/guides/users')
  const code = page.locator('.code-frame').first()
  await press(code, 'Copy')
  await code.getByText('Copied').waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  t.equal(copied, await code.locator('pre').textContent())
  await page.getByRole('heading', { name: 'Read on' }).waitFor()
  await page.locator('.further .row').first().getByRole('link').click()
  await page.waitForURL(/\/guides\/sessions$/)
})
