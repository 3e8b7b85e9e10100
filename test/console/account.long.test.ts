import { readFileSync } from 'node:fs'
import t from 'tap'
import { look, press } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { ingestTexts } from '#test/support/start/consolidation.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

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

test('copy: to a user of the account, and no id makes a new one', async (t, { open }) => {
  const own = await buildKey(backend)
  const api = createTestClient(base, own)
  await ingestTexts(api, ['The canoe is red.', 'The canoe leaks.', 'Tea at four.'])
  const { body: ada } = await api.post('/v1/keys', { external_id: 'ada' })
  const page = await open(own, 'copy')
  await page.getByLabel('To the user').fill('nobody')
  await press(page, 'See what would be copied')
  await page.getByText('The account has no user of this id').waitFor()
  const { users } = (await api.get('/v1/account/users?limit=1')).body
  t.equal(users, 1)
  await page.getByLabel('To the user').fill('ada')
  await press(page, 'See what would be copied')
  await press(page, 'Copy 3 memories')
  await page.getByText('3 memories are copied').waitFor()
  t.equal((await createTestClient(base, ada.key).get('/v1/memory/stats')).body.memories, 3)
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
  await page.waitForURL(/\/v1\/receipts\/[\w-]+$/)
  t.equal((await api.get('/v1/memory/stats')).status, 401)
  t.equal(await page.evaluate(() => sessionStorage.length), 0)
  const receipt = async (): Promise<{ status: string; receipt: string | null }> =>
    JSON.parse(await page.locator('body').innerText())
  await waitUntil('the account is erased', async () => {
    await page.reload()
    return (await receipt()).status === 'erased'
  })
  const [, payload = ''] = (await receipt()).receipt!.split('.')
  const { erased } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  t.ok([3, 6].includes(erased.memories))
})
