import t from 'tap'
import {
  barriersOf,
  look,
  noBrowser,
  openBrowser,
  openTab,
  overflowOf,
  picture,
  settled,
  signIn,
  visit,
} from '#test/console/browser.ts'
import { fillVault } from '#test/console/stories.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
if (!skip) await fillVault(backend, api, key)
const browser = skip ? null : await openBrowser(t)

const pages = [
  'overview',
  'search',
  'prompt',
  'traces',
  'timeline',
  'reflections',
  'consolidate',
  'profile',
  'sessions',
  'connect',
  'copy',
  'usage',
  'files',
  'operations',
  'keys',
  'policy',
  'webhooks',
  'account',
]

for (const theme of ['light', 'dark'] as const) {
  t.test(
    `${theme}: pages of a vault have no serious barrier, and fit a phone`,
    { skip },
    async t => {
      const { page, faults, strangers } = await openTab(browser!, api.base, { theme })
      await page.goto('/console')
      await look(t, page, `${theme}-door`)
      await signIn(page, key)
      for (const name of pages) {
        await visit(page, name)
        if (name === 'search') await page.getByLabel('Question').fill('my cat and thunder')
        if (name === 'search') await page.keyboard.press('Enter')
        if (name === 'prompt')
          await page.getByLabel('Message of the user').fill('Is my cat afraid of thunder?')
        if (name === 'prompt') await page.getByRole('button', { name: 'Show' }).click()
        if (name === 'sessions') await page.getByRole('button', { name: 'trip-1' }).click()
        await settled(page)
        await look(t, page, `${theme}-${name}`)
      }
      t.same(faults, [])
      t.same(strangers, [])
    },
  )
}

t.test('dialogs have no serious barrier either, and fit', { skip }, async t => {
  const { page } = await openTab(browser!, api.base, { width: 360, height: 740 })
  await signIn(page, key)
  await visit(page, 'reflections')
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

t.test(
  'a phone opens its menu, a page begins at its heading, the theme is kept',
  { skip },
  async t => {
    const { page } = await openTab(browser!, api.base, { width: 360, height: 740 })
    await signIn(page, key)
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
  },
)
