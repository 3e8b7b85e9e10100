import type { Page, Route } from 'playwright-core'
import t from 'tap'
import { look, settled } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { maskKey } from '#shared/access/key.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const key = await buildKey(backend)
const { test } = consoleTests(t, base)

/** Holds back all modules of the console until it is told to let them go. */
async function holdModules(page: Page): Promise<() => Promise<void>> {
  const held: Route[] = []
  let isHeld = true
  await page.route(/\/console\/(?:app|lib)\//, route =>
    isHeld ? void held.push(route) : route.continue(),
  )
  return async () => {
    isHeld = false
    await Promise.all(held.map(route => route.continue()))
  }
}

const input = (page: Page) => page.getByLabel('Key', { exact: false }).first()
const outline = (page: Page): Promise<string> =>
  page.evaluate(() =>
    document
      .querySelector('.door-card')!
      .outerHTML.replace(/<p class="door-stuck[^]*?<\/p>/, '')
      .replaceAll(/>\s+|\s+</g, words => words.trim())
      .replaceAll(/ (?:id|aria-describedby|required|spellcheck|disabled)="[^"]*"| disabled/g, '')
      .replace(/ value="[^"]*"/, ''),
  )

test('the form works when two files have come, and the console goes on from there', async (t, {
  page,
  bytes,
}) => {
  const asked: string[] = []
  page.on('requestfinished', request => asked.push(new URL(request.url()).pathname))
  const letGo = await holdModules(page)
  await page.goto('/console', { waitUntil: 'commit' })
  await input(page).fill('mk_not_a_key')
  t.same(asked, ['/console', '/console/style.css'])
  t.ok((await bytes()) < 16_000, `${await bytes()} bytes`)
  const before = await outline(page)
  await input(page).fill(key.slice(0, 12))
  await letGo()
  await page.getByText('System', { exact: true }).waitFor()
  t.equal(await outline(page), before, 'the console draws the same')
  t.equal(await input(page).inputValue(), key.slice(0, 12), 'what was written stays')
  t.equal(
    await page.evaluate(() => document.activeElement?.tagName),
    'INPUT',
    'and the next key comes after it',
  )
  await page.keyboard.type(key.slice(12))
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
})

test('what was sent before the console came is done when it comes', async (t, { page }) => {
  const letGo = await holdModules(page)
  await page.goto('/console', { waitUntil: 'commit' })
  await input(page).fill(key)
  await page.getByRole('button', { name: 'Open' }).click()
  await page.getByRole('button', { name: 'Working …', disabled: true }).waitFor()
  await letGo()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  const again = await holdModules(page)
  await page.reload({ waitUntil: 'commit' })
  await page.locator('.door').waitFor({ state: 'hidden' })
  await again()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  t.equal(await page.locator('.door').count(), 0, 'who is signed in sees no form')
})

test('a line that breaks before the console came leaves a way', async (t, { page, faults }) => {
  await page.route(/\/console\/(?:app|lib)\//, route => route.abort())
  await page.goto('/console')
  await page.getByText('The console could not be loaded.').waitFor()
  await look(t, page, 'door-stuck')
  faults.length = 0
  await page.unroute(/\/console\/(?:app|lib)\//)
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByText('System', { exact: true }).waitFor()
})

test('a slow line: 400 ms and 50 kB/s', async (t, { page }) => {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 400,
    downloadThroughput: 50_000,
    uploadThroughput: 50_000,
  })
  const begun = performance.now()
  await page.goto('/console', { waitUntil: 'commit' })
  await page.getByRole('button', { name: 'Open' }).waitFor()
  t.comment(`the form is there after ${Math.round(performance.now() - begun)} ms`)
  await settled(page)
  t.comment(`all of the console after ${Math.round(performance.now() - begun)} ms`)
})

t.test('a key signs in while MongoDB is away, and reaches what Postgres has', async t => {
  const config = await createTestConfig(t)
  const mongo = await startFaultProxy(t, config.mongodbUri)
  const backend = await createTestBackend(t, { config: { ...config, mongodbUri: mongo.url } })
  const { base } = await startTestApi(t, backend)
  const key = await buildKey(backend)
  mongo.shut()
  await consoleTests(t, base).test('in the console', async (t, { open }) => {
    const page = await open(key, 'keys')
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    await page.locator('.rows > li').first().waitFor()
    t.match(await page.locator('.rows').first().innerText(), maskKey(key), 'its keys are listed')
  })
  mongo.open()
})
