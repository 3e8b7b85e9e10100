import t from 'tap'
import { look, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { backend, key, api, test } = await startConsole(t)

test('keys: of a user, found by the id, and replaced', async (t, { open }) => {
  await api.post('/v1/keys', { external_id: 'bob' })
  const page = await open(key, 'keys')
  await press(page, /^New key/)
  await page.getByRole('dialog').getByLabel('Your id of the user').fill('ada@example.com')
  await press(page, 'Create')
  const minted = await page.locator('.secret').innerText()
  await press(page, 'I have copied it')
  t.equal((await api.post('/v1/keys', { external_id: 'ada@example.com' })).body.key, minted)

  await page.getByLabel('Find a key').fill('ada@example.com')
  const rows = page.locator('ul.rows li')
  await rows.filter({ hasText: 'user ada@example.com' }).waitFor()
  t.equal(await rows.count(), 1)
  t.match(await rows.first().innerText(), /user ada@example\.com/)
  await picture(page, 'keys-by-user')
  await press(page, /^Replace: key/)
  await press(page.getByRole('dialog'), 'Replace')
  await page.getByText('The new key').waitFor()
  const replaced = await page.locator('.secret').innerText()
  await press(page, 'I have copied it')
  t.equal((await createTestClient(api.base, minted).get('/v1/memory/stats')).status, 401)
  t.equal((await createTestClient(api.base, replaced).get('/v1/memory/stats')).status, 200)
  await waitUntil('the ended key is listed too', async () => (await rows.count()) === 2)
  await visit(page, 'history')
  const replacing = await page.locator('ol li').first().innerText()
  t.match(replacing, /replaced\s+a key[^]+of user\s+ada@example\.com/)
})

test('policy: requests make users, or do not any more, and each has a budget', async (t, {
  open,
}) => {
  const page = await open(key, 'policy')
  await page.getByLabel('Requests of each user in 24 hours').fill('40')
  await page.getByLabel('Dollars of each user in 30 days').fill('2.5')
  await page.getByLabel('Requests make users that are new').uncheck()
  await page.getByLabel('A session id').selectOption('core')
  await press(page, 'Save')
  const policy = async () => (await api.get('/v1/account/policy')).body
  await waitUntil('it is decided', async () => !(await policy()).create_users)
  t.match(await policy(), {
    retention_days: null,
    user_daily_requests: 40,
    user_daily_tokens: null,
    user_monthly_dollars: 2.5,
    sessions: 'core',
  })
})

test('people: the profile and the timeline of a user, by your id', async (t, { open }) => {
  const owner = await buildKey(backend)
  const client = createTestClient(api.base, owner)
  const { key: ofCarla } = (await client.post('/v1/keys', { external_id: 'carla/7' })).body
  await insertMemories(backend, ofCarla, [
    { text: 'I live in Porto now.', at: Date.parse('2026-03-01T10:00:00Z') },
    { text: 'The tram was late again.', at: Date.parse('2026-03-05T10:00:00Z') },
  ])
  const page = await open(owner, 'people')
  await page.getByText('1 of at most 100,000').waitFor()
  await press(page, 'Budget: carla/7')
  await page.getByLabel('Requests of this key in 24 hours').fill('1000')
  await press(page.getByRole('dialog'), 'Save')
  await page.getByText('Used: 0 of 1,000 requests').waitFor()
  t.match(await page.locator('main').innerText(), /2 memories\s+\+2 in 7 days/)
  await look(t, page, 'people')
  await page.getByRole('link', { name: 'Open: carla/7' }).click()
  await page.getByRole('heading', { name: 'carla/7' }).waitFor()
  await page.locator('.latest li').nth(1).waitFor()
  await settled(page)
  t.match(await page.locator('.latest li').first().innerText(), /The tram was late again/)
  t.match(await page.locator('main').innerText(), /Places\s+.?I live in Porto now/)
  t.match(await page.getByRole('img').getAttribute('aria-label'), /^2 memories by day/)
  await look(t, page, 'person')
  await page.reload()
  await page.getByRole('heading', { name: 'carla/7' }).waitFor()

  await page.locator('main').getByRole('link', { name: 'Search' }).click()
  await page.getByLabel('Question').fill('Where do I live?')
  await page.keyboard.press('Enter')
  const found = page.locator('article').filter({ hasText: 'I live in Porto now.' })
  await found.waitFor()
  await page.getByRole('link', { name: 'carla/7' }).waitFor()
  await look(t, page, 'person-search')
  await press(found, /^Delete/)
  await press(page.getByRole('dialog'), 'Delete')
  await found.waitFor({ state: 'detached' })
  const carla = createTestClient(api.base, ofCarla)
  t.equal((await carla.get('/v1/memory/stats')).body.memories, 1, 'it was of the user')
  await page.getByRole('link', { name: 'carla/7' }).click()
  await page.getByRole('link', { name: 'What the model sees' }).click()
  await page.getByLabel('Message').fill('Was the tram on time?')
  await press(page, 'Show')
  t.match(await page.locator('pre').innerText(), /The tram was late again\./)
  await look(t, page, 'person-prompt')
  await page.reload()
  await page.locator('pre').waitFor()
  t.equal((await client.get('/v1/memory/stats')).body.memories, 0, 'the vault of the key has none')
  t.equal((await carla.get('/v1/memory/stats')).body.memories, 1, 'nothing is stored')

  const said = { messages: [{ role: 'user', content: 'The ferry to Cacilhas is closed.' }] }
  await carla.post('/v1/memory/ingest?wait=true', said, { 'x-session-id': 'chat-1' })
  await page.evaluate(() => (location.hash = '#/people/carla%2F7'))
  await page.getByText('1 memory lies in 1 session, each recalled').waitFor()
  await page.getByText('The ferry to Cacilhas is closed.').waitFor()
  t.match(await page.locator('.latest li').allInnerTexts(), [/ferry[^]+chat-1/, /tram/], 'one list')
  await look(t, page, 'person-sessions')
  await backend.usage.flush()
  await visit(page, 'sessions')
  await page.getByLabel('Session', { exact: true }).fill('chat-')
  await page.getByText('No session of this id here').waitFor()
  await page.locator('main').getByRole('link', { name: 'chat-1' }).waitFor()
  await look(t, page, 'sessions-of-users')
  await page.locator('main').getByRole('link', { name: 'carla/7' }).click()
  await page.getByRole('button', { name: 'Open: chat-1' }).waitFor()
  await page.evaluate(() => (location.hash = '#/people/carla%2F7'))
  await page.locator('main').getByRole('link', { name: 'Sessions', exact: true }).click()
  await press(page, 'Open: chat-1')
  await page.getByText('The ferry to Cacilhas is closed.').waitFor()
  const asked = { messages: [{ role: 'user', content: 'Is the ferry to Cacilhas closed?' }] }
  const prepared = await carla.post('/v1/memory/prepare', asked, { 'x-session-id': 'chat-2' })
  const trace = prepared.headers.get('x-memory-trace')!
  await page.evaluate(id => (location.hash = `#/traces/${id}/carla%2F7`), trace)
  await page
    .getByText('1 memory of this vault lies in 1 session that this call did not read')
    .waitFor()
  await look(t, page, 'call-unread-sessions')
  await page.evaluate(() => (location.hash = '#/people/carla%2F7'))
  await press(page, 'Delete this user')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('heading', { name: 'Delete carla/7?' }).waitFor()
  await dialog.getByLabel(/Type delete/).fill('delete')
  await press(dialog, 'Delete this user')
  await page.getByRole('heading', { name: 'The user is deleted' }).waitFor()
  t.match(await page.locator('main').innerText(), /carla\/7[^]*2 memories and 1 key are gone/)
  t.equal((await carla.get('/v1/memory/stats')).status, 401)
  await look(t, page, 'person-deleted')
  await page.evaluate(() => (location.hash = '#/people/dora'))
  await page.getByText('The account has no user of this id').waitFor()
  const keys = (await client.get('/v1/keys?external_id=dora')).body.items
  t.same(keys, [], 'looking at an unknown id makes no user')
})
