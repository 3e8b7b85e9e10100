import t from 'tap'
import { picture, press, settled } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { insertPastCall, rewindUsageRollUp } from '#test/support/checks/alter-jobs.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'

await passMidnight()
const { backend, key, api, test } = await startConsole(t)
await rewindUsageRollUp(backend, 'usage_rolled', 20)
const owner = await resolveCaller(backend, key)
const ada = (await api.post('/v1/keys', { external_id: 'ada', name: 'Ada' })).body
const adaCaller = await resolveCaller(backend, ada.key)
const model = 'openai/gpt-5'
for (const ago of [0, 1, 2, 5, 9, 12])
  await insertPastCall(backend, adaCaller, ago, {
    model,
    session: `chat-${ago}`,
    input: 90_000 * (ago + 1),
    cached: 60_000,
    output: 12_000,
    memory: 900,
  })
await insertPastCall(backend, owner, 1, { model: 'lab/own', input: 4_000, output: 500, memory: 40 })
await api.send('PATCH', `/v1/keys/${ada.id}`, { body: { daily_requests: 500 } })
await createTestClient(api.base, ada.key).post('/v1/memory/search', { query: 'cats', limit: 3 })
await backend.usage.flush()

test('an owner sees the account: money, a chart, and who used it', async (t, { open }) => {
  const page = await open(key, 'usage')
  await page.getByRole('img', { name: /^Cost: / }).waitFor()
  await settled(page)
  await picture(page, 'usage-account')
  const { total, items } = (await api.get('/v1/account/usage/report?group=user')).body
  const cost = `$${total.cost_usd.toFixed(2)}`
  t.match(await page.locator('.figure', { hasText: 'Cost' }).innerText(), cost)
  const label = await page.getByRole('img').getAttribute('aria-label')
  t.equal(label, `Cost: ${cost} in 30 days, a colour for each model`)
  await page.getByText('Not in the cost: 4,500 tokens of models without a price').waitFor()
  const rowOf = (text: string) => page.locator('section:last-of-type .table tr', { hasText: text })
  t.match(await rowOf('lab/own').innerText(), /\t4,000\t0\t500\t40\tno price/)

  const colourOf = async () =>
    page.locator('figcaption li', { hasText: model }).locator('.colour-mark').getAttribute('style')
  const colour = await colourOf()
  await page.getByLabel('Chart of').selectOption('Requests')
  await page.getByRole('img', { name: /^Requests: / }).waitFor()
  t.equal(await colourOf(), colour, 'a model has one colour in all measures')
  await page.getByLabel('Chart of').selectOption('Cost')

  await page.getByLabel('By').selectOption('User')
  await rowOf('ada').waitFor()
  t.match(page.url(), /by=user/)
  t.match(await rowOf('ada').innerText(), /1 of 500 requests/)
  t.match(await rowOf('ada').innerText(), cost)
  await press(page, 'User', { exact: true })
  t.equal(
    await page.getByRole('columnheader', { name: 'User' }).getAttribute('aria-sort'),
    'ascending',
  )
  await press(page, 'Cost', { exact: true })
  t.equal(
    await page.getByRole('columnheader', { name: /^Cost/ }).getAttribute('aria-sort'),
    'descending',
  )
  t.equal(items[0].external_id, 'ada')
  await picture(page, 'usage-users')
  await rowOf('ada').getByRole('link').click()
  await page.getByRole('heading', { name: 'ada', level: 1 }).waitFor()
  await page.goBack()
  await rowOf('ada').waitFor()
  await page.getByLabel('By').selectOption('Session')
  await rowOf('chat-12').waitFor()
  await page.getByLabel('By').selectOption('Key')
  await rowOf('Ada').waitFor()
  await page.getByLabel('Chart of').selectOption('Tokens of models')
  await page.getByRole('heading', { name: 'Tokens of models a day' }).waitFor()
  await page.getByText('Prices', { exact: true }).click()
  await page.getByRole('cell', { name: model }).last().waitFor()
  await page.reload()
  await rowOf('Ada').waitFor()
})

test('a key of a user sees its own use alone', async (t, { open }) => {
  const page = await open(ada.key, 'usage')
  await page.locator('.history-bars').first().waitFor()
  await settled(page)
  t.match(await page.locator('main').innerText(), /Of this key/)
  t.notMatch(await page.locator('main').innerText(), /\$|lab\/own/)
})
