import t from 'tap'
import { look, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'

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

story(
  'try a text: refused without a key, then facts, tags and what they change',
  async (t, { page }) => {
    const admin = createTestClient(base, adminKey)
    for (const label of ['finance', 'brand']) await admin.post(`/v1/orgs/${org}/tags`, { label })
    await visit(page, at('trial'))
    const main = () => page.locator('main').innerText()
    const message = page.getByLabel('Message of a member')
    await message.fill('Fact: launch: on June 7')
    await press(page, 'Try it')
    await page.getByText('has no key for openai').last().waitFor()
    await admin.send('PUT', '/v1/account/provider-keys/openai', {
      body: { key: 'sk-0123456789abcdef' },
    })
    await admin.post(`/v1/orgs/${org}/memories`, { text: 'launch: on May 5', tags: ['brand'] })
    await message.fill(
      'Fact: launch: on June 7 #brand\nFact: floor: 3 #decor\nFact: salary of Eve: 90\nFact: secret recipe: salt',
    )
    await page.getByText(/not saved/).click()
    await page.getByLabel('Tag', { exact: true }).fill('decor')
    await page.getByLabel('Never store').fill('recipe')
    await press(page, 'Try it')
    await page.getByText('Nothing would be shared').waitFor()
    t.match(await main(), /A rule keeps it from every model: never store\s+recipe/)
    t.match(await main(), /No model was called/)
    await page.getByLabel('Never store').fill('')
    await press(page, 'Try it')
    await page.getByRole('heading', { name: '4 facts kept' }).waitFor()
    const shown = await main()
    t.match(
      shown,
      /launch: on June 7 #brand\s+brand\s+Waits for review: it contradicts what a person/,
    )
    t.match(shown, /Would be replaced, once approved\s+launch: on May 5/)
    t.match(shown, /floor: 3 #decor\s+decor/)
    t.match(shown, /Waits for review: it has no tag, and words about pay/)
    t.match(shown, /3 model calls: 300 tokens in, 60 out/)
    await page.getByText('What was answered').first().click()
    await page.getByText('brand: 95 %').first().waitFor()
    await look(t, page, 'trial')
    const { items } = (await admin.get(`/v1/orgs/${org}/memories`)).body
    t.notMatch(JSON.stringify(items), /June 7|floor/, 'nothing is shared')
  },
)
