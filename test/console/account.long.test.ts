import { readFileSync } from 'node:fs'
import t from 'tap'
import { look, noBrowser, openBrowser, openTab, signIn, visit } from '#test/console/browser.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { ingestTexts } from '#test/support/consolidation.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const email = 'rosa@example.com'
const key = await buildKey(backend, email)
const api = await startTestApi(t, backend, key)
await ingestTexts(api, ['The canoe is red.', 'The canoe leaks.', 'Tea at four.'])
const browser = skip ? null : await openBrowser(t)

t.test('copy: looked at first, then copied with its progress', { skip }, async t => {
  const { page, faults } = await openTab(browser!, api.base)
  const other = createTestClient(api.base, await buildKey(backend))
  const minted = (await api.post('/v1/keys', { name: 'other' })).body.key
  await signIn(page, key)
  await visit(page, 'copy')
  await page.getByLabel('Key of the other vault').fill('mk_00000000000000000000000000000000')
  await page.getByRole('button', { name: 'See what would be copied' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Key of the other vault').fill(minted)
  await page.getByRole('button', { name: 'See what would be copied' }).click()
  await page.getByRole('button', { name: 'Copy 3 memories' }).waitFor()
  await look(t, page, 'copy-preview')
  t.equal((await createTestClient(api.base, minted).get('/v1/memory/stats')).body.memories, 0)
  await page.getByRole('button', { name: 'Copy 3 memories' }).click()
  await page.getByText('3 memories are copied').waitFor()
  await look(t, page, 'copy-done')
  t.equal((await createTestClient(api.base, minted).get('/v1/memory/stats')).body.memories, 3)
  t.equal((await other.get('/v1/memory/stats')).body.memories, 0)

  await page.getByLabel('What is copied').selectOption('matching')
  await page.getByLabel(/^Questions or topics/).fill('the red canoe')
  await page.getByRole('button', { name: 'See what would be copied' }).click()
  await page.getByText('The canoe is red.').waitFor()
  t.notMatch(page.url(), minted.slice(3), 'a key is in no address')
  t.same(faults, [])
})

t.test('account: exported, then erased, with a receipt that needs no key', { skip }, async t => {
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'account')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export the account' }).click()
  t.match(readFileSync(await (await download).path(), 'utf8'), 'The canoe leaks.')

  const erase = async (address: string): Promise<void> => {
    await page.getByLabel('Email of the account').fill(address)
    await page.getByRole('button', { name: 'Erase the account' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/Type erase/).fill('erase')
    await dialog.getByRole('button', { name: 'Erase', exact: true }).click()
  }
  await erase('another@example.com')
  await page.getByRole('dialog').getByRole('alert').waitFor()
  await page.keyboard.press('Escape')
  t.equal((await api.get('/v1/memory/stats')).status, 200, 'nothing is erased')
  await erase(email)
  await page.getByRole('heading', { name: 'Receipt of an erasure' }).waitFor()
  t.equal((await api.get('/v1/memory/stats')).status, 401)
  t.equal(await page.evaluate(() => sessionStorage.length), 0)
  await page.getByText('Erased', { exact: true }).first().waitFor({ timeout: 180_000 })
  await page.getByText('The signature is valid').waitFor()
  t.match(await page.locator('main').innerText(), /memories\s+[36]/)
  await look(t, page, 'receipt')

  const id = new URL(page.url()).hash.split('/').at(-1)!
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'Receipt of an erasure' }).click()
  await page.getByLabel('Number of the receipt').fill(id)
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('The signature is valid').waitFor()
  t.same(faults, [])
})
