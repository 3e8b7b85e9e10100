import t from 'tap'
import {
  look,
  noBrowser,
  openBrowser,
  openTab,
  picture,
  settled,
  signIn,
  visit,
} from '#test/console/browser.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { insertMemories } from '#test/support/insert-memories.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const browser = skip ? null : await openBrowser(t)

t.test('keys: of a user, found by the id, and replaced', { skip }, async t => {
  await api.post('/v1/keys', { external_id: 'bob' })
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'keys')
  await page.getByRole('button', { name: /^New key/ }).click()
  await page.getByRole('dialog').getByLabel('Your id of the user').fill('ada@example.com')
  await page.getByRole('button', { name: 'Create' }).click()
  const minted = await page.locator('.secret').innerText()
  await page.getByRole('button', { name: 'I have kept it' }).click()
  t.equal((await api.post('/v1/keys', { external_id: 'ada@example.com' })).body.key, minted)

  await page.getByLabel('Keys of the user').fill('ada@example.com')
  const rows = page.locator('ul.rows li')
  await waitUntil('one row is left', async () => (await rows.count()) === 1)
  t.match(await rows.first().innerText(), /user ada@example\.com/)
  await picture(page, 'keys-by-user')
  await page.getByRole('button', { name: /^Replace the key/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click()
  await page.getByText('The new key').waitFor()
  const replaced = await page.locator('.secret').innerText()
  await page.getByRole('button', { name: 'I have kept it' }).click()
  t.equal((await createTestClient(api.base, minted).get('/v1/memory/stats')).status, 401)
  t.equal((await createTestClient(api.base, replaced).get('/v1/memory/stats')).status, 200)
  await waitUntil('the ended key is listed too', async () => (await rows.count()) === 2)
  await visit(page, 'overview')
  await visit(page, 'keys')
  t.match(await page.locator('ol li').first().innerText(), /Key replaced.+of user ada@example\.com/)
  t.same(faults, [])
})

t.test('policy: requests make users, or do not any more', { skip }, async t => {
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'policy')
  await page.getByLabel('Requests make users that are new').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  const policy = async () => (await api.get('/v1/account/policy')).body
  await waitUntil('it is decided', async () => !(await policy()).create_users)
  t.match(await policy(), { redaction: { mode: 'off' }, retention_days: null })
  t.same(faults, [])
})

t.test('people: the profile and the timeline of a user, by your id', { skip }, async t => {
  const owner = await buildKey(backend)
  const client = createTestClient(api.base, owner)
  const { key: ofCarla } = (await client.post('/v1/keys', { external_id: 'carla/7' })).body
  await insertMemories(backend, ofCarla, [
    { text: 'I live in Porto now.', at: Date.parse('2026-03-01T10:00:00Z') },
    { text: 'The tram was late again.', at: Date.parse('2026-03-05T10:00:00Z') },
  ])
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, owner)
  await visit(page, 'people')
  await look(t, page, 'people')
  await page.getByRole('link', { name: 'Open carla/7' }).click()
  await page.getByRole('heading', { name: 'carla/7' }).waitFor()
  await page.locator('.latest li').nth(1).waitFor()
  await settled(page)
  t.match(await page.locator('.latest li').first().innerText(), /The tram was late again/)
  t.match(await page.locator('main').innerText(), /Places\s+.?I live in Porto now/)
  t.match(await page.getByRole('img').getAttribute('aria-label'), /^2 memories by day/)
  await look(t, page, 'person')
  await page.reload()
  await page.getByRole('heading', { name: 'carla/7' }).waitFor()

  await page.evaluate(() => (location.hash = '#/people/dora'))
  await page.getByText('The account has no user of this id').waitFor()
  const keys = (await client.get('/v1/keys?external_id=dora')).body.items
  t.same(keys, [], 'looking at an unknown id makes no user')
  t.same(faults, [])
})
