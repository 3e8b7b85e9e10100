import t from 'tap'
import { picture, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { startTeamModel } from '#test/support/team-model.ts'

const model = await startTeamModel(t)
const { backend, base, story } = await startConsole(t, model.env)
const { org, adminKey } = await fillTeam(backend, base)

const at = (name: string): string => `orgs/${org}/${name}`

story('see as a member: what they get, what is kept back and why', async (t, { open }) => {
  const page = await open(adminKey, at('members'))
  await page.getByRole('link', { name: 'See as: ann@example.com' }).click()
  await page.getByRole('heading', { name: /^Given/ }).waitFor()
  await settled(page)
  const main = () => page.locator('main').innerText()
  t.match(await main(), /ann@example\.com\s+with the role\s+Accounting/)
  t.match(await main(), /Given: 4 memories/)
  t.match(await main(), /The new logo is blue\.\s+Not allowed:\s+brand\s+Allowed by\s+Board/)
  await picture(page, 'see-as')

  await page.getByLabel('Question').fill('Is the new logo blue?')
  await page.waitForURL(/query=/)
  await settled(page)
  t.match(await main(), /Kept back: 1 memory\s/)
  await page.getByLabel('Member').selectOption({ label: 'anyone with these roles' })
  await page.getByLabel('Board').check()
  await page.getByText('sees every memory').waitFor()
  await settled(page)
  t.match(await main(), /Someone\s+with the role\s+Board\s+sees every memory/)
  t.match(page.url(), /see-as\?roles=[0-9a-f-]+&query=Is\+the/)
  await page.reload()
  await page.getByText('sees every memory').waitFor()
  t.match(await main(), /The new logo is blue\./)

  await visit(page, at('roles'))
  await page.getByRole('link', { name: 'See as: Accounting' }).click()
  await page.getByText('Not allowed:').waitFor()
  t.ok(await page.getByLabel('Accounting').isChecked())
})
