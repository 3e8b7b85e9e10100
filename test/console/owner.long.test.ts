import t from 'tap'
import { look, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { tracedCalls } from '#test/support/samples/traced-calls.ts'
import { passMidnight, waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startModelProvider(t)
const { backend, key, api, test } = await startConsole(t, provider.env)

test('an owner: from the users of a product to what one of them asked, and what it cost', async (t, {
  open,
}) => {
  await passMidnight()
  provider.respondAlways(respondJson(chatCompletion('It is orange.')))
  const ask = tracedCalls({ provider, base: api.base }, key)
  const says = async (user: string, content: string): Promise<void> => {
    const messages = [{ role: 'user', content }]
    const body = JSON.stringify({ model: 'openai/gpt-5', messages })
    const { status } = await ask('/v1/chat/completions', body, { 'x-memory-user': user })
    t.equal(status, 200)
  }
  await says('user-17', 'My bicycle is orange, and its bell is broken.')
  await says('user-18', 'My boat is green.')
  const stored = async (): Promise<number> => {
    const { items } = (await api.get('/v1/account/users?counts=true')).body
    return items.reduce((sum: number, { memories }: { memories: number }) => sum + memories, 0)
  }
  await waitUntil('both are stored', async () => (await stored()) === 4)
  await says('user-17', 'Which colour has my bicycle?')
  await waitUntil('this too', async () => (await stored()) === 6)
  await backend.usage.flush()

  const page = await open(key)
  await page.getByRole('heading', { name: 'Home', exact: true }).waitFor()
  await page.getByText(/^3 calls in 1 day, 0 of them failed/).waitFor()
  await settled(page)
  t.match(
    await page.locator('main').innerText(),
    /Users\s+2[^]+Calls today\s+3[^]+Cost of the month\s+\$[^]+Most active users, 7 days[^]+user-17[^]+user-18/,
  )
  await look(t, page, 'home')
  await page.keyboard.press('Control+k')
  const menu = page.getByRole('dialog')
  await menu.getByLabel('Page, user or trace of a call').fill('user-17')
  await menu.getByRole('link', { name: 'user-17 Users' }).waitFor()
  await look(t, page, 'command-menu')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'user-17' }).waitFor()
  await page.keyboard.press('Control+k')
  await menu.getByLabel('Page, user or trace of a call').fill('work')
  await page.keyboard.press('Enter')
  await page.getByText('Nothing waits, and nothing has failed').waitFor()
  await visit(page, 'people')
  const main = (): Promise<string> => page.locator('main').innerText()
  await page.getByLabel('Id or name of the user').fill('17')
  await page.getByText('user-18').waitFor({ state: 'detached' })
  await settled(page)
  t.match(await main(), /user-17\s[^]*4 memories/)
  await press(page, 'Budget: user-17')
  await page.getByLabel('Requests of this key in 24 hours').fill('1000')
  await press(page.getByRole('dialog'), 'Save')
  await page.getByText(/Used: \d of 1,000 requests/).waitFor()

  await page.getByRole('link', { name: 'Open: user-17' }).click()
  await page.getByRole('link', { name: /^1 memory, / }).waitFor()
  t.match(
    await main(),
    /Last call\s+(?:just now|\d+ min)[^]+Cost of 7 days\s+\$[^]+2 requests[^]+Budget\s+0 %/,
  )
  await page.locator('main').getByRole('link', { name: 'Search' }).click()
  await settled(page)
  await page.getByLabel('Question').fill('What is broken?')
  await page.keyboard.press('Enter')
  await page.locator('article').getByText('its bell is broken').first().waitFor()
  t.notMatch(await main(), /boat/)
  await page.getByRole('link', { name: 'user-17' }).click()
  await page.getByRole('link', { name: 'What the model sees' }).click()
  await page.getByLabel('Message').fill('Which colour has my bicycle?')
  await press(page, 'Show')
  t.match(await page.locator('pre').innerText(), /bicycle is orange/)

  await page.getByRole('link', { name: 'user-17' }).click()
  await page.locator('main').getByRole('link', { name: 'Calls', exact: true }).click()
  const call = page.locator('.rows li', { hasText: /Which colour has my bicycle[^]+openai\/gpt-5/ })
  await call.getByRole('link').first().click()
  await page.getByRole('heading', { name: /^Where .+ went$/ }).waitFor()
  t.match(await main(), /Answer\s+It is orange\./)
  t.match(await main(), /bicycle is orange, and its bell/)

  await visit(page, 'usage')
  await page.getByLabel('By').selectOption('User')
  const row = page.locator('section:last-of-type .table tr', { hasText: 'user-17' })
  await row.waitFor()
  t.match(await row.innerText(), /\$/)
})
