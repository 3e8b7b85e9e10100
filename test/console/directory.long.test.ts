import t from 'tap'
import { look, press, settled } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'

const { backend, base, test } = await startConsole(t)
const { org, path, adminKey, admin } = await fillTeam(backend, base)

test('settings: a token for a directory, what a group gives, and signing in', async (t, {
  open,
}) => {
  const page = await open(adminKey, `orgs/${org}/settings`)
  const dialog = page.getByRole('dialog')
  await press(page, 'New token')
  await dialog.getByLabel('Description').fill('Okta')
  await press(dialog, 'Make it')
  const token = await page.locator('.secret').innerText()
  await press(page, 'I have copied it')
  const users = (key: string): Promise<Response> =>
    fetch(`${base}/scim/v2/Users`, { headers: { authorization: `Bearer ${key}` } })
  t.equal((await users(token)).status, 200)
  const row = page.locator('article', { hasText: 'Okta' })
  await row.waitFor()
  t.notMatch(await page.locator('main').innerText(), token, 'shown once')

  await press(page, 'Add a group')
  await dialog.getByLabel('Group').fill('Finance')
  await dialog.getByRole('checkbox').first().check()
  await dialog.getByLabel('Its members review').check()
  await look(t, page, 'directory-grant')
  await press(dialog, 'Save')
  await page.getByText('Finance', { exact: true }).waitFor()
  t.match((await admin.get(`${path}/directory`)).body.grants, [
    { group: 'Finance', role_ids: [String], reviews: true },
  ])
  await settled(page)
  await look(t, page, 'directory')

  await page.getByLabel('Members and reviewers have to sign in').check()
  await press(page, 'Save signing in')
  await page.getByText(/has no login provider/).waitFor()
  t.equal((await admin.get(`${path}/directory`)).body.sign_in_required, false)

  await press(page, 'Remove: Finance')
  await press(dialog, 'Remove')
  await page.getByText('Groups give nothing yet').waitFor()
  await press(row, /^Remove: /)
  await press(dialog, 'Remove')
  await page.getByText('The token is removed.').waitFor()
  t.equal((await users(token)).status, 401)
})
