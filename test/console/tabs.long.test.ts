import type { Page } from 'playwright-core'
import t from 'tap'
import { press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey } from '#test/support/start/api.ts'

const { backend, key, test } = await startConsole(t)

/** Opens a link as a click with Ctrl does. */
async function openInTab(page: Page, link: string): Promise<Page> {
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: link }).click({ modifiers: ['Control'] })
  return opened
}

async function useKey(tab: Page, key: string): Promise<void> {
  await tab.getByLabel('Key', { exact: false }).first().fill(key)
  await press(tab, 'Open', { exact: true })
}

const heading = (page: Page, name: string): Promise<void> =>
  page.getByRole('heading', { name, level: 1 }).waitFor()

test('a new tab is signed in as the one it was opened from; signing out ends all', async (t, {
  page,
  open,
}) => {
  await open(key, 'overview')
  const { key: adminKey } = await buildAdmin(backend, 'ann@example.com')
  const other = await page.context().newPage()
  await other.goto('/console#/sign-in')
  await useKey(other, adminKey)
  await heading(other, 'Organizations')
  const opened = await openInTab(page, 'Search')
  await heading(opened, 'Search')
  t.same(await opened.evaluate(() => Object.values(localStorage).join().includes('mk_')), false)
  const third = await openInTab(opened, 'Timeline')
  await heading(third, 'Timeline')

  await third.goto('/guides')
  await opened.getByRole('button', { name: 'Sign out' }).click()
  for (const tab of [opened, page, other]) {
    await tab.getByLabel('Key', { exact: false }).first().waitFor()
    t.equal(await tab.evaluate(() => sessionStorage.length), 0)
  }
  t.match(await page.locator('main').innerText(), 'You have signed out in another tab.')
  await third.goBack()
  await third.getByLabel('Key', { exact: false }).first().waitFor()
})

test('another key opens a vault in this tab alone', async (t, { page, open }) => {
  await open(key, 'overview')
  const opened = await openInTab(page, 'Timeline')
  await heading(opened, 'Timeline')
  await opened.getByRole('link', { name: 'Use another key' }).click()
  await opened
    .getByLabel('Key', { exact: false })
    .first()
    .fill(await buildKey(backend))
  await opened.getByRole('button', { name: 'Open', exact: true }).click()
  await opened.getByRole('heading', { name: 'Nothing is remembered yet' }).waitFor()
  const keyOf = (tab: Page): Promise<string> => tab.locator('.bar-key code').innerText()
  t.not(await keyOf(opened), await keyOf(page))
})

test('an address of no page says so, and leads to the first', async (t, { page, open }) => {
  await open(key, 'search')
  for (const address of ['nonsense', 'search/nonsense', 'traces/a/b/c', 'orgs']) {
    await page.evaluate(hash => (location.hash = hash), `#/${address}`)
    await heading(page, 'There is no such page')
    await page.evaluate(() => (location.hash = '#/search'))
    await heading(page, 'Search')
  }
  await page.goto('/console#/nonsense')
  await heading(page, 'There is no such page')
  await page.getByRole('link', { name: 'Go to the first page' }).click()
  await visit(page, 'overview')
  await settled(page)
  t.match(await page.title(), /^Overview/)
})
