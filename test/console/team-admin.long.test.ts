import t from 'tap'
import { openTab, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const model = await startTeamModel(t)
const { backend, base, test } = await startConsole(t, model.env)

test('an admin: from a team without members to what one of them may know', async (t, { open }) => {
  const { key } = await buildAdmin(backend, operatorEmail(backend.config))
  const admin = createTestClient(base, key)
  const page = await open(key, 'orgs')
  const dialog = page.getByRole('dialog')

  await press(page, 'New organization')
  await dialog.getByLabel('Name').fill('Northwind')
  await dialog.getByLabel('Key for openai').fill('sk-0123456789abcdef')
  await press(dialog, 'Create')
  await press(page, 'I have copied it')
  const [{ org_id: org }] = (await admin.get('/v1/orgs')).body.orgs
  const at = (name: string): string => `orgs/${org}/${name}`
  const main = (): Promise<string> => page.locator('main').innerText()

  await visit(page, at('tags'))
  for (const label of ['launch', 'salaries']) {
    await press(page, 'New tag')
    await dialog.getByLabel('Label').fill(label)
    await press(dialog, 'Save')
    await page.locator('article').getByText(label).first().waitFor()
  }
  await visit(page, at('roles'))
  await press(page, 'New role')
  await dialog.getByLabel('Name').fill('Marketing')
  await dialog.getByLabel('launch').check()
  await press(dialog, 'Save')
  await dialog.waitFor({ state: 'detached' })
  await visit(page, at('members'))
  await press(page, 'Add a member')
  await dialog.getByLabel('Email').fill('ivan@example.com')
  await dialog.getByLabel('Marketing').check()
  await press(dialog, 'Add')
  await press(page, 'Invite: ivan@example.com')
  const link = new URL(await page.locator('.secret').innerText())
  t.equal(link.origin, base)
  await press(page, 'I have copied it')
  const { page: theirs } = await openTab(t, base)
  await theirs.goto(link.href)
  await press(theirs, 'Open this vault')
  await theirs.getByRole('link', { name: 'Memory', exact: true }).click()
  await theirs.getByRole('link', { name: 'Shared by you' }).click()
  await theirs.getByText('What you say may reach your team').waitFor()
  const stored = await theirs.evaluate(() => Object.values(sessionStorage).join())
  const ivan = createTestClient(base, /mk_org_\w+/.exec(stored)![0])

  const said = ['Fact: date: the third of May #launch', 'Fact: raise: five per cent #salaries']
  for (const content of said) {
    await ivan.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })
  }
  const shared = async () => (await admin.get(`/v1/orgs/${org}/memories`)).body.items
  await waitUntil('both are shared', async () => (await shared()).length === 2)

  await visit(page, at('memories'))
  await page.locator('article').getByText('the third of May').waitFor()
  await visit(page, at('members'))
  await page.getByRole('link', { name: 'See as: ivan@example.com' }).click()
  await page.getByRole('heading', { name: /^Given: 1 memory/ }).waitFor()
  t.match(await main(), /the third of May/)
  t.match(await main(), /five per cent.+\s+Not allowed:\s+salaries/)

  await visit(page, at('home'))
  await page.getByRole('heading', { name: 'Knowledge over time' }).waitFor()
  await settled(page)
  t.match(await main(), /Shared memories\s+2\s/)
  await visit(page, at('passes'))
  await settled(page)
  t.match(await main(), /the third of May/)
  await visit(page, at('audit'))
  await settled(page)
  t.match(await main(), /ivan@example\.com\s+created/)
})
