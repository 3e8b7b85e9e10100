import t from 'tap'
import { look, phone, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { ingestTexts } from '#test/support/start/consolidation.ts'

const { backend, api, base, test } = await startConsole(t)
const { org, adminKey } = await fillTeam(backend, base)
await ingestTexts(api, ['work of a tenant'])

const ofOrg =
  'home review memories see-as members roles tags instructions trial audit events passes settings'.split(
    ' ',
  )

const ofService = ['', '/queues', '/tenants', '/usage', '/operations'].map(name => `service${name}`)

test('pages of a team have no barrier, and fit, from a phone to 2560 px', async (t, { open }) => {
  const page = await open(adminKey)
  for (const name of ['orgs', 'admins', ...ofOrg, ...ofService]) {
    await visit(page, ofOrg.includes(name) ? `orgs/${org}/${name}` : name)
    if (ofOrg.includes(name)) {
      t.match(await page.title(), / · Acme · /)
      t.equal(await page.locator('main .notice').count(), 1, `${name} says what stops the team`)
    }
    await look(t, page, `org-${name.replace('/', '-')}`)
  }
})

test('hints for keys are shown where there is room for a keyboard', async (t, { open }) => {
  const page = await open(adminKey, `orgs/${org}/review`)
  const hints = page.locator('.keys')
  await hints.waitFor()
  await page.setViewportSize(phone)
  t.equal(await hints.isVisible(), false)
})
