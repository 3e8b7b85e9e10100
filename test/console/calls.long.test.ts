import t from 'tap'
import { look, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startModelProvider(t)
const { backend, key, api, test } = await startConsole(t, provider.env)

test('calls: every way with words, status, time and cost; filters; one of a user', async (t, {
  open,
}) => {
  provider.respondAlways(respondJson(chatCompletion('It is orange.')))
  const { key: ofCarla } = (await api.post('/v1/keys', { external_id: 'carla/7' })).body
  await insertMemories(backend, ofCarla, [{ text: 'The bicycle is orange.' }])
  const carla = createTestClient(api.base, ofCarla)
  const messages = [{ role: 'user', content: 'Which bicycle is orange?' }]
  const model = tracedCalls({ provider, base: api.base }, ofCarla)
  await model('/v1/chat/completions', JSON.stringify({ model: 'openai/gpt-5', messages }))
  await carla.post('/v1/memory/search', { query: 'orange bicycle', limit: 5 })
  await api.post('/v1/memory/prepare', { messages: [{ role: 'user', content: 'Thanks!' }] })
  const listed = async () => (await api.get('/v1/traces?account=true')).body.items
  await waitUntil('the answer is stored', async () =>
    (await listed()).some(({ answer }: { answer: string | null }) => answer !== null),
  )
  await waitUntil('all are logged', async () => (await listed()).length === 3)

  const page = await open(key, 'traces')
  const rows = page.locator('.rows li')
  await rows.nth(2).waitFor()
  const ofModel = rows.filter({ hasText: 'openai/gpt-5' })
  const words = await ofModel.innerText()
  t.match(words, /^Which bicycle is orange\?\s+It is orange\.\s+carla\/7\s+openai\/gpt-5/)
  t.match(words, /gpt-5\s+1 memory\s+[\d.]+ m?s\s+\$/)
  const { height } = (await ofModel.boundingBox())!
  t.ok(height <= 44, `a row of ${height} px`)
  t.match(await rows.filter({ hasText: 'Prepare' }).innerText(), /Thanks!\s+Prepare\s+no question/)
  await look(t, page, 'calls')
  await press(page, 'Nothing relevant')
  await rows.nth(1).waitFor({ state: 'detached' })
  t.match(page.url(), /#\/traces\?status=none/)
  await press(page, 'All', { exact: true })
  await rows.nth(2).waitFor()
  await press(page, 'Filter', { exact: true })
  await page.getByLabel('Kind of call').selectOption('search')
  await rows.nth(1).waitFor({ state: 'detached' })
  t.match(page.url(), /#\/traces\?way=search/)
  await page.reload()
  await rows.first().waitFor()
  t.match(await rows.allInnerTexts(), [/^orange bicycle\s+carla\/7\s+Search/])
  await press(page, /^Kind of call: Search/)
  await rows.nth(2).waitFor()

  await visit(page, 'people')
  await page.getByRole('link', { name: 'Open: carla/7' }).click()
  await page.locator('main').getByRole('link', { name: 'Calls' }).click()
  await ofModel.waitFor()
  await settled(page)
  t.equal(await rows.count(), 2, 'those of the user')
  await ofModel.getByRole('link').click()
  const pane = page.getByRole('complementary', { name: 'The call' })
  await pane.getByRole('heading', { name: /^Where .+ went$/ }).waitFor()
  const main = await page.locator('main').innerText()
  t.match(main, /Asked\s+Which bicycle is orange\?\s+Answer\s+It is orange\./)
  t.match(main, /The bicycle is orange\.[\s\S]+found by\s+its words/)
  t.match(main, /Recall [\d.]+ m?s\s+Model [\d.]+ m?s\s+Everything else [\d.]+ m?s/)
  await look(t, page, 'call-beside')
  await page.keyboard.press('Escape')
  await pane.waitFor({ state: 'detached' })
  await ofModel.getByRole('link').focus()
  await page.keyboard.press('k')
  t.equal(await page.evaluate(() => document.activeElement?.textContent), 'orange bicycle')
  await ofModel.getByRole('link').click()
  await pane.getByRole('link', { name: 'Whole page' }).click()
  await page.getByRole('heading', { name: 'Which bicycle is orange?', level: 1 }).waitFor()
  await look(t, page, 'call')

  const degraded = `update call_traces set status = 'degraded',
    trace = trace || '{"status": "degraded"}' where id = $1`
  await backend.postgres.query(degraded, [(await listed())[0].trace_id])
  await page.evaluate(() => (location.hash = '#/traces?status=degraded'))
  await page.locator('.chip-bad').getByText('without memory').waitFor()
  t.equal(await rows.count(), 1)
})
