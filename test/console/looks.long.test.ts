import t from 'tap'
import {
  barriersOf,
  look,
  overflowOf,
  phone,
  picture,
  press,
  settled,
  visit,
} from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillVault } from '#test/console/stories.ts'

const { backend, key, api, test } = await startConsole(t)
await fillVault(backend, api, key)

const pages = [
  ...'overview search traces timeline reflections profile sessions'.split(' '),
  ...'connect copy usage files operations keys providers applications policy'.split(' '),
  ...'webhooks history account'.split(' '),
]

test('pages of a vault have no barrier, and fit, from a phone to 2560 px', async (t, {
  page,
  open,
}) => {
  await page.goto('/console')
  await look(t, page, 'door')
  await open(key)
  for (const name of pages) {
    await visit(page, name)
    if (name === 'search') await page.getByLabel('Question').fill('my cat and thunder')
    if (name === 'search') await page.keyboard.press('Enter')
    if (name === 'sessions') await press(page, 'Open: trip-1')
    await settled(page)
    await look(t, page, name)
  }
})

test('dialogs have no barrier either, and fit', async (t, { page, open }) => {
  await page.setViewportSize(phone)
  await open(key, 'reflections')
  // On a phone the actions of a memory stand below its words.
  await page.locator('article button.line-text').first().click()
  for (const name of ['Lineage', 'Edit', 'Delete']) {
    await page
      .getByRole('button', { name: new RegExp(`^${name}`) })
      .first()
      .click()
    await page.getByRole('dialog').waitFor()
    await settled(page)
    t.same(await barriersOf(page), [], name)
    t.equal(await overflowOf(page), 0, name)
    await picture(page, `narrow-dialog-${name}`)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
})

test('a phone opens its menu, a page begins at its heading, the theme is kept', async (t, {
  page,
  open,
}) => {
  await page.setViewportSize(phone)
  await open(key)
  const menu = page.getByRole('button', { name: 'Menu' })
  t.equal(await menu.getAttribute('aria-expanded'), 'false')
  await menu.click()
  await picture(page, 'narrow-menu')
  await page.getByLabel('Dark').check()
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('link', { name: 'Usage' }).waitFor({ state: 'hidden' })
  await page.waitForFunction(() => document.activeElement?.textContent === 'Usage')
  t.match(await page.title(), /^Usage/)
  await page.reload()
  t.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
})
