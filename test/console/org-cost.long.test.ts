import t from 'tap'
import { press, settled } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { backend, base, newTeam } = await startTeamService(t)
const { test } = consoleTests(t, base)

test('what a team costs, by day, pass, model and member', async (t, { open }) => {
  const team = await newTeam(['launch'])
  const page = await open(team.adminKey, `orgs/${team.org}/settings`)
  await page.getByText('No model was called in the last 30 days').waitFor()

  await passMidnight()
  await team.share('Fact: floor: 3 #launch')
  // Calls of a day before, of another size.
  await backend.postgres.query(
    `insert into org_usage (org, day, pass, member, model, calls, input_tokens, cached_tokens, output_tokens)
     select org, day - 3, pass, member, model, 7, 12345, 0, 0 from org_usage
     where org = $1 and pass = 'extract'`,
    [team.org],
  )
  const { body } = await team.admin.get(`/v1/orgs/${team.org}/usage`)
  await page.reload()
  await page.locator('.history-bars').waitFor()
  await settled(page)
  const chart = page.locator('.history-bars')
  const dayBefore = Object.entries(body.by_day)[0]![0]
  const day = Number(dayBefore.slice(8))
  t.equal(Object.keys(body.by_day).length, 2)
  const label = await chart.getAttribute('aria-label')
  t.match(label, new RegExp(`^Tokens: .*most on .*\\b${day}\\b`))

  const section = page.locator('section', { has: chart })
  const rows = await section.locator('.stack > .table').locator('tr').allInnerTexts()
  const cells = rows.map(row => row.split('\t').map(cell => cell.trim()))
  t.match(cells, [
    ['Of', 'Calls', 'Tokens in', 'Of these cached', 'Tokens out', 'Cost'],
    ['Pass: extract', '8'],
    ['Pass: tag', '1'],
  ])
  t.match(
    cells.find(([name]) => name === 'In all'),
    ['In all', String(body.total.calls), /,/, /%/, /\d/, 'no price'],
  )
  t.ok(cells.some(([name]) => name === 'Member: ada@example.com'))
  await section.getByText(/^Not in the cost: [\d,]+ tokens of models without a price/).waitFor()
  await section.getByText('Days with calls').click()
  const days = await section.locator('.stack > details .table tr').allInnerTexts()
  t.equal(days.length, 3, 'a head and two days')
  t.match(days[1], /\t7\t12,345\t/)
})

test('the pipeline is paused, and its budget is set', async (t, { open }) => {
  const team = await newTeam()
  const page = await open(team.adminKey, `orgs/${team.org}/settings`)
  await press(page, 'Pause')
  await page.getByText('Paused: what members say waits.').waitFor()
  await page.getByLabel('Tokens a day').fill('5000')
  await press(page, 'Set the budget')
  await page.getByText('The pipeline is changed.').last().waitFor()
  await settled(page)
  const { body } = await team.admin.get(`/v1/orgs/${team.org}`)
  t.match(body.pipeline, { state: 'paused', daily_token_budget: 5000 })
})
