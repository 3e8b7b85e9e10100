import t from 'tap'
import { look, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { billedEvents } from '#test/support/checks/observe.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startModelProvider(t)
const { backend, key, api, test } = await startConsole(t, provider.env)

test('overview: an empty vault says how to fill it', async (t, { open }) => {
  const page = await open(key)
  await page.getByText('Nothing is remembered yet').waitFor()
  await picture(page, 'overview-empty')
  t.equal(
    await page.getByRole('link', { name: 'Connect a client' }).getAttribute('href'),
    '#/connect',
  )
})

test('overview: the page of an empty vault shows the first memory when it arrives', async (t, {
  open,
}) => {
  const own = await buildKey(backend)
  const page = await open(own)
  await page.getByText('Nothing is remembered yet').waitFor()
  await look(t, page, 'first-steps')
  const messages = [{ role: 'user', content: 'The first word.' }]
  await createTestClient(api.base, own).post('/v1/memory/ingest?wait=true', { messages })
  await page.getByText('The first word.').waitFor()
})

test('a memory is added by hand', async (_, { open }) => {
  const page = await open(await buildKey(backend), 'timeline')
  await press(page, 'Add a memory')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Text').fill('My cat is called Ada.')
  await press(dialog, 'Store')
  await page.locator('article').getByText('My cat is called Ada.').waitFor()
})

test('playground: what was said is recalled in a new conversation, without and with a model', async (t, {
  open,
}) => {
  const own = await buildKey(backend)
  const client = createTestClient(api.base, own)
  await client.send('PUT', '/v1/account/provider-keys/openai', { body: { key: 'sk-of-mine' } })
  const page = await open(own, 'playground')
  const say = async (text: string): Promise<void> => {
    await page.getByLabel('Message').fill(text)
    await press(page, 'Send')
    await page.locator('.memory-text').getByText(text, { exact: true }).waitFor()
  }
  const model = page.getByLabel('Model')
  await waitUntil('a model is chosen', async () => (await model.inputValue()) !== 'none')
  await model.selectOption('none')
  await say('My cat is called Ada and she hates thunder.')
  await page.getByText('Nothing was recalled').waitFor()
  await page.getByText('Your message is stored.').waitFor()
  await press(page, 'New conversation')
  await say('What is my cat called?')
  await page.getByText(/Recalled: 1 memory/).waitFor()
  t.match(await page.locator('aside li').innerText(), /called Ada/)
  await look(t, page, 'playground')
  await press(page, 'New conversation')
  await model.selectOption({ index: 1 })
  await page.getByLabel('Beside it: the answer without memory').check()
  await say('Does my cat like thunder?')
  await page.getByText(/Recalled: \d memor/).waitFor()
  await page.getByText('Your message and the answer are stored.').waitFor()
  t.equal(await page.getByText('Without memory', { exact: true }).count(), 1)
  await look(t, page, 'playground-beside')
  await visit(page, 'search')
  await visit(page, 'playground')
  await page.reload()
  await page.locator('.memory-text').getByText('Does my cat like thunder?').waitFor()
  await page.getByRole('link', { name: 'Its trace' }).click()
  await page.getByRole('heading', { name: 'Does my cat like thunder?', level: 1 }).waitFor()
  await press(page, 'Sign out')
  await open(await buildKey(backend), 'playground')
  await page.getByText('Nothing was asked yet').waitFor()
  t.equal(await page.getByText('Does my cat like thunder?').count(), 0, 'nor outlives its key')
})

test('overview: memories over time, the latest ones and the use of today', async (t, { open }) => {
  const said = [
    ['2026-01-05T10:00:00Z', 'user', 'We planted the pear tree.'],
    ['2026-01-06T10:00:00Z', 'user', 'The pear tree has been watered.'],
    ['2026-03-02T10:00:00Z', 'user', 'The first blossoms are out.'],
    ['2026-03-02T11:00:00Z', 'assistant', 'Cover them when frost is announced.'],
  ]
  const messages = said.map(([at, role, content]) => ({
    role,
    content,
    timestamp: Date.parse(at!),
  }))
  await passMidnight()
  await api.post('/v1/memory/ingest?wait=true', { messages })
  await backend.usage.flush()
  const page = await open(key)
  const chart = page.getByRole('img', { name: /by day/ })
  await settled(page)
  await picture(page, 'overview-filled')
  t.equal(
    await chart.getAttribute('aria-label'),
    '4 memories by day, most in 2 Mar 2026: 2',
    'the chart is told to those who do not see it',
  )
  t.equal(await page.locator('.history-bars [fill="var(--data)"]').count(), 3)
  const latest = page.locator('.latest li')
  t.equal(await latest.count(), 4)
  t.match(await latest.first().innerText(), /Cover them when frost.*\s+assistant/)
  t.match(await page.locator('main').innerText(), /4 in all/)
  t.match(await page.locator('main').innerText(), /Used today\s+Requests\s+[1-9]/)
  t.match(await page.locator('main').innerText(), /Model input\s+0\s/, 'no model was called')

  await page.getByText('The same in numbers').click()
  await page.getByRole('link', { name: '6 Jan 2026' }).click()
  await page.getByText('The pear tree has been watered.').waitFor()
  await settled(page)
  t.equal(await page.locator('article').count(), 1, 'the timeline of that day')
  await visit(page, 'overview')
  await page.locator('.opens').first().click()
  await page.locator('article').getByText('We planted the pear tree.').waitFor()
})

test('overview: what was recalled today, with how many messages', async (t, { open }) => {
  await passMidnight()
  const own = await buildKey(backend)
  await insertMemories(backend, own, [{ text: 'The bicycle is orange.' }])
  const call = tracedCalls({ provider, base: api.base }, own)
  const page = await open(own)
  await page.getByText('No memory was recalled today').waitFor()
  for (const content of ['Which bicycle is orange?', 'What colour has the bicycle?']) {
    const messages = [{ role: 'user', content }]
    const body = JSON.stringify({ model: 'openai/gpt-5', messages, memory_mode: 'read' })
    const { status, trace } = await call('/v1/chat/completions', body)
    t.equal(status, 200)
    t.ok(trace)
  }
  const client = createTestClient(api.base, own)
  await client.post('/v1/memory/search', { query: 'the orange bicycle', limit: 3 })
  const logged = async () => (await client.get('/v1/traces?way=search')).body.items.length === 1
  await waitUntil('the search is in the log', logged)
  await page.reload()
  const rows = page.locator('.recalled li')
  await rows.first().waitFor()
  t.match(await rows.allInnerTexts(), [/The bicycle is orange\.\s+Recalled 3 times, last/])
  await look(t, page, 'overview-recalled')
})

test('looking bills nothing, whatever is looked at', async (t, { open }) => {
  const own = await buildKey(backend)
  const client = createTestClient(api.base, own)
  const { key: ofCarla } = (await client.post('/v1/keys', { external_id: 'carla' })).body
  const many = Array.from({ length: 8 }, (_, i) => ({ text: `I live in town ${i}.` }))
  for (const each of [own, ofCarla]) await insertMemories(backend, each, many)
  const billed = async (): Promise<number> => {
    await backend.usage.flush()
    const events = [
      ...(await billedEvents(backend, own)),
      ...(await billedEvents(backend, ofCarla)),
    ]
    return events.reduce((sum, { memoryTokens }) => sum + (memoryTokens ?? 0), 0)
  }
  const page = await open(own)
  const seen = async (): Promise<void> => {
    await visit(page, 'overview')
    await page.locator('.latest li').nth(4).waitFor()
    await visit(page, 'people')
    await page.getByRole('link', { name: 'Open: carla' }).click()
    await page.locator('.latest li').nth(4).waitFor()
    await settled(page)
  }
  await seen()
  await press(page, 'Show more')
  await page.locator('.latest li').nth(7).waitFor()
  t.equal(await page.locator('.latest li').count(), 8, 'the rest')

  await insertMemories(backend, own, [{ text: 'A ninth town.' }])
  await visit(page, 'overview')
  await page.locator('.latest li').first().getByText('A ninth town.').waitFor()
  t.equal(await billed(), 0)
})
