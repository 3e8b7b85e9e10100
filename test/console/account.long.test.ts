import { readFileSync } from 'node:fs'
import t from 'tap'
import { look, press } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { ingestTexts } from '#test/support/consolidation.ts'

const { backend, base, test } = await startConsole(t)
const email = 'rosa@example.com'
const key = await buildKey(backend, email)
const api = createTestClient(base, key)
await ingestTexts(api, ['The canoe is red.', 'The canoe leaks.', 'Tea at four.'])

test('copy: looked at first, then copied with its progress', async (t, { open }) => {
  const other = createTestClient(base, await buildKey(backend))
  const minted = (await api.post('/v1/keys', { name: 'other' })).body.key
  const page = await open(key, 'copy')
  await page.getByLabel('Key of the other vault').fill('mk_00000000000000000000000000000000')
  await press(page, 'See what would be copied')
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Key of the other vault').fill(minted)
  await press(page, 'See what would be copied')
  await page.getByRole('button', { name: 'Copy 3 memories' }).waitFor()
  await look(t, page, 'copy-preview')
  t.equal((await createTestClient(base, minted).get('/v1/memory/stats')).body.memories, 0)
  await press(page, 'Copy 3 memories')
  await page.getByText('3 memories are copied').waitFor()
  await look(t, page, 'copy-done')
  t.equal((await createTestClient(base, minted).get('/v1/memory/stats')).body.memories, 3)
  t.equal((await other.get('/v1/memory/stats')).body.memories, 0)

  await page.getByLabel('What is copied').selectOption('matching')
  await page.getByLabel(/^Questions or topics/).fill('the red canoe')
  await press(page, 'See what would be copied')
  await page.getByText('The canoe is red.').waitFor()
  t.notMatch(page.url(), minted.slice(3), 'a key is in no address')
})

test('account: exported, then erased, with a receipt that needs no key', async (t, { open }) => {
  const page = await open(key, 'account')
  const download = page.waitForEvent('download')
  await press(page, 'Export the account')
  t.match(readFileSync(await (await download).path(), 'utf8'), 'The canoe leaks.')

  const erase = async (address: string): Promise<void> => {
    await page.getByLabel('Email of the account').fill(address)
    await press(page, 'Erase the account')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/Type erase/).fill('erase')
    await press(dialog, 'Erase', { exact: true })
  }
  await erase('another@example.com')
  await page.getByRole('dialog').getByRole('alert').waitFor()
  await page.keyboard.press('Escape')
  t.equal((await api.get('/v1/memory/stats')).status, 200, 'nothing is erased')
  await erase(email)
  await page.getByRole('heading', { name: 'Receipt of an erasure' }).waitFor()
  t.equal((await api.get('/v1/memory/stats')).status, 401)
  t.equal(await page.evaluate(() => sessionStorage.length), 0)
  await page.getByText('Erased', { exact: true }).first().waitFor()
  await page.getByRole('link', { name: '/v1/receipts/key' }).waitFor()
  t.match(await page.locator('main').innerText(), /memories\s+[36]/)
  await look(t, page, 'receipt')

  const id = new URL(page.url()).hash.split('/').at(-1)!
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'Receipt of an erasure' }).click()
  await page.getByLabel('Number of the receipt').fill(id)
  await press(page, 'Show')
  await page.getByText('Erased', { exact: true }).first().waitFor()
  t.match(await page.locator('pre').innerText(), /^[\w-]+\.[\w-]+\.[\w-]+$/)
})
