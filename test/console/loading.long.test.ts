import t from 'tap'
import { look, settled } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { startTestApi } from '#test/support/api.ts'
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
  for (const path of ['/guides', '/guides/start', '/guides/endpoints', '/guides?q=key']) {
    await page.goto(path)
    await look(t, page, path.replaceAll(/\W/g, '-'))
  }
})
