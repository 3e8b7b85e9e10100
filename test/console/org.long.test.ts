import { readFileSync } from 'node:fs'
import t from 'tap'
import { barriersOf, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startTeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const model = await startTeamModel(t)
const { backend, base, story } = await startConsole(t, model.env)
const { org, path, adminKey, admin, waiting } = await fillTeam(backend, base)

const at = (name: string): string => `orgs/${org}/${name}`

story(
  'organizations: a new one has models that answer, and tells its key once',
  async (t, { open }) => {
    const page = await open(adminKey)
    await settled(page)
    await press(page, 'New organization')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Acme Research')
    await dialog.getByLabel('Provider').selectOption('anthropic')
    await dialog.getByLabel('Model that tags and compares').fill('claude-of-ours')
    await dialog.getByLabel('Key for anthropic').fill('sk-ant-0123456789abcdef')
    model.failAll(401)
    await press(dialog, 'Create')
    await dialog.getByText(/did not answer \(status 401\)/).waitFor()
    t.same(await barriersOf(page), [])
    await picture(page, 'org-new')
    t.equal((await admin.get('/v1/orgs')).body.orgs.length, 1, 'nothing is made')
    t.same((await admin.get('/v1/account/provider-keys')).body.provider_keys, [])
    model.failAll(null)
    await press(dialog, 'Create')
    t.match(await page.locator('.secret').innerText(), /^mk_/)
    await press(page, 'I have copied it')
    await page.getByText('The team knows nothing yet').waitFor()
    await visit(page, 'orgs')
    await page.getByRole('link', { name: /Acme Research/ }).waitFor()
    await picture(page, 'orgs')
    t.match((await admin.get('/v1/orgs')).body.orgs, [
      { notice: /no key for openai/ },
      { extract_model: /^claude/, classify_model: 'claude-of-ours', notice: null },
    ])
    const cards = await page.locator('.card').allInnerTexts()
    t.match(cards, [/shares nothing new/, /^(?!.*shares nothing new)/s])
  },
)

story(
  'a team: its name is on its pages, and the choice of another leads to its home',
  async (t, { page }) => {
    await visit(page, at('members'))
    t.equal(await page.title(), 'Members · Acme · Memory Vault')
    t.match(await page.locator('main header').first().innerText(), /^Acme\s+Members/)
    await page.getByText(/Nothing new is shared.+no key for openai/).waitFor()
    await page.getByLabel('Organization').selectOption({ label: 'Acme Research' })
    await page.getByText('The team knows nothing yet').waitFor()
    t.equal(await page.title(), 'Home · Acme Research · Memory Vault')
    t.equal(await page.getByText('Nothing new is shared').count(), 0)
    await page.goBack()
    await page.getByText('ann@example.com').first().waitFor()
  },
)

story('review: decided, tagged and undone by keys alone', async (t, { page }) => {
  const standing = async (id: string) =>
    (await admin.get(`${path}/memories`)).body.items.find(
      ({ mem_id }: { mem_id: string }) => mem_id === id,
    )
  const current = () => page.locator('[aria-current="true"]').innerText()
  const press = async (key: string, then: string): Promise<void> => {
    await page.keyboard.press(key)
    await page.getByText(then).last().waitFor()
  }
  for (const label of ['suppliers', 'jade']) await admin.post(`${path}/tags`, { label })
  await visit(page, at('review'))
  await picture(page, 'review')
  t.match(await current(), /deposit/)
  await press('j', '2 of 3 memories')
  t.match(await current(), /logo/)
  await press('k', '1 of 3 memories')
  await press('a', '1 of 2 memories')
  t.match(await standing(waiting[0]!), { reviewed: true, tags: ['finance'] })
  t.match(await current(), /logo/, 'the next one, with the focus on it')
  await page.waitForFunction(() => document.activeElement?.matches('[aria-current="true"]'))

  await press('u', '1 of 3 memories')
  t.match(await standing(waiting[0]!), { reviewed: false })
  await page.keyboard.press('e')
  const tags = page.getByRole('group', { name: 'Tags' })
  await tags.waitFor()
  t.same(await tags.getByRole('checkbox').count(), 3, 'the tags there are, and the one it has')
  t.ok(await tags.getByLabel('finance (no tag of the organization)').isChecked())
  t.ok(await page.evaluate(() => document.activeElement?.matches('input[type=checkbox]')))
  for (const label of ['suppliers', 'jade']) await tags.getByLabel(label).press('Space')
  await picture(page, 'review-tags')
  await press('Enter', '1 of 2 memories')
  t.match(await standing(waiting[0]!), { reviewed: true, tags: ['finance', 'jade', 'suppliers'] })
  await page.keyboard.press('e')
  await page.keyboard.press('Escape')
  await press('d', '1 of 1 memory')
  t.match(await standing(waiting[1]!), { reviewed: true, tags: ['brand'] })
  t.match(
    await current(),
    /Replaces, once approved:\s+The Q3 budget was cut by a tenth\.\s+finance/,
  )
  await press('d', 'The queue is empty')
  t.not(await page.title(), 'taken')
})

story('tags and roles: made, changed and removed', async (t, { page }) => {
  const dialog = page.getByRole('dialog')
  await visit(page, at('tags'))
  await press(page, 'New tag')
  await dialog.getByLabel('Label').fill('finance')
  await dialog
    .getByLabel('Examples', { exact: true })
    .fill('The budget was cut.\nRosa got a raise.')
  await press(dialog, 'Save')
  await page.getByText('2 examples').waitFor()
  await picture(page, 'tags')
  const { tags } = (await admin.get(`${path}/tags`)).body
  t.match(
    tags.find(({ label }: { label: string }) => label === 'finance'),
    { label: 'finance', examples: [/budget/, /Rosa/] },
  )

  await visit(page, at('roles'))
  await picture(page, 'roles')
  await press(page, 'Edit: Board')
  await dialog.getByLabel('Every tag there is and will be').uncheck()
  await dialog.getByLabel('finance').check()
  await picture(page, 'role-form')
  await press(dialog, 'Save')
  await dialog.waitFor({ state: 'detached' })
  const roles = async () => (await admin.get(`${path}/roles`)).body.roles
  t.match(
    (await roles()).find(({ name }: { name: string }) => name === 'Board'),
    { allowed_tags: ['finance'] },
  )
  await press(page, 'Remove: Board')
  await press(dialog, 'Remove')
  await dialog.waitFor({ state: 'detached' })
  t.equal((await roles()).length, 1)
})

story('tags: one is applied to what is shared, and its progress is shown', async (t, { page }) => {
  const dialog = page.getByRole('dialog')
  await visit(page, at('tags'))
  await press(page, 'Apply to memories: jade')
  await dialog.getByText('memories to check').waitFor()
  t.match(await dialog.innerText(), /4 memories to check: 1 model call, about \d+ input tokens/)
  t.same(await barriersOf(page), [])
  await picture(page, 'tag-apply')
  await press(dialog, 'Check 4 memories')
  // The organization has no key for its models: the run waits, and says why.
  await dialog.getByText('Waiting:').waitFor()
  t.match(await dialog.innerText(), /Checked 0 of 4 memories\.\s+0 got the tag/)
  t.equal(await dialog.getByRole('progressbar').count(), 1)
  t.same(await barriersOf(page), [])
  await picture(page, 'tag-apply-running')
  await press(dialog, 'Close')
  await dialog.waitFor({ state: 'detached' })
})

story(
  'members: added with roles, given a key, which is shown again and revoked',
  async (t, { page }) => {
    const dialog = page.getByRole('dialog')
    await visit(page, at('members'))
    await press(page, 'Add a member')
    await dialog.getByLabel('Email').fill('ben@example.com')
    await dialog.getByLabel('First name').fill('Ben')
    await dialog.getByLabel('Accounting').check()
    await press(dialog, 'Add')
    await page.getByLabel('More: ben@example.com').click()
    await press(page, 'New key: ben@example.com')
    const key = await page.locator('.secret').innerText()
    await press(page, 'I have copied it')
    await settled(page)
    await picture(page, 'members')
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 200)

    await page.getByLabel('Find by member or key').fill('ben@')
    const row = page.locator('article:has(code)')
    await page.waitForFunction(() => document.querySelectorAll('article code').length === 1)
    await press(row, /^Show: key/)
    t.equal(await page.locator('.secret').innerText(), key)
    await press(page, 'I have copied it')
    await press(row, /^Revoke/)
    await press(dialog, 'Revoke')
    await page.getByText('revoked', { exact: true }).waitFor()
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 401)
  },
)

story('instructions: rules are added and kept', async (t, { page }) => {
  await visit(page, at('instructions'))
  await page.getByLabel('Your own').fill('Keep decisions and their reasons.')
  await page.getByRole('button', { name: 'Add a rule' }).first().click()
  await page.getByLabel('What it is about').fill('salaries')
  await press(page, 'Save')
  await page.getByText('The instructions are saved.').waitFor()
  await settled(page)
  await picture(page, 'instructions')
  t.match((await admin.get(`${path}/instructions`)).body, {
    custom: 'Keep decisions and their reasons.',
    anti_rules: [{ match: 'salaries' }],
  })
})

story(
  'shared memories: seeded, searched, changed, deleted, and brought back',
  async (t, { page }) => {
    const dialog = page.getByRole('dialog')
    await visit(page, at('memories'))
    await picture(page, 'shared-memories')
    await press(page, 'Seed a memory')
    await dialog.getByLabel('Text').fill('The canteen is closed on Fridays.')
    t.ok(await page.evaluate(() => document.activeElement?.matches('textarea')), 'ready to write')
    await dialog.getByLabel('suppliers').check()
    await press(dialog, 'Share')
    const card = page.locator('article', { hasText: 'canteen' })
    await card.getByText('suppliers', { exact: true }).waitFor()
    await press(card, /^Edit/)
    await dialog.getByLabel('Text').fill('The canteen is open on Fridays.')
    await dialog.getByLabel('suppliers').uncheck()
    await press(dialog, 'Save')
    await card.getByText('open on Fridays').waitFor()
    await press(card, /^History/)
    await dialog.getByText('The canteen is closed on Fridays.').first().waitFor()
    await picture(page, 'history')
    await press(dialog, 'Bring this back')
    await page.getByText('The memory is as it was.').waitFor()
    await press(dialog, 'Close')
    await card.getByText('closed on Fridays').waitFor()
    await press(card, /^Delete/)
    await press(dialog, 'Delete')
    await press(page, 'Undo')
    await card.getByText('closed on Fridays').waitFor()
    await press(card, /^Delete/)
    await press(dialog, 'Delete')
    await card.waitFor({ state: 'detached' })
    await page.getByLabel('Search').fill('budget')
    await page.getByRole('combobox', { name: 'Tag' }).selectOption('finance')
    await page.locator('article', { hasText: 'office' }).waitFor({ state: 'detached' })
    await settled(page)
    const budget = await page.locator('article').first().innerText()
    t.match(budget, /budget/)
    t.match(budget, /page: 4\s+source: minutes/)
  },
)

story('audit: who changed what, and what a deleted memory said', async (t, { page }) => {
  await visit(page, at('audit'))
  await picture(page, 'audit')
  const text = await page.locator('main').innerText()
  t.match(text, /owner@\S+\s+reviewed\s+a memory of their own\s+The supplier asks for a deposit\./)
  t.match(text, /owner@\S+\s+deleted\s+a memory\s+Deleted\./)
  await page.getByLabel('What').selectOption('delete')
  await page.waitForFunction(() => document.querySelectorAll('article').length === 2)
  await page
    .getByRole('button', { name: /^History/ })
    .first()
    .click()
  await page.getByRole('dialog').getByText('Deleted', { exact: true }).first().waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Bring this back' }).first().click()
  await page.getByText('The memory is as it was.').waitFor()
  // What the page says may still be about the memory before: what the service says is waited for.
  const found = async () => (await admin.get(`${path}/memories?q=canteen&limit=1`)).body.items
  await waitUntil('it is back', async () => (await found()).length === 1)
  t.match(await found(), [{ text: 'The canteen is closed on Fridays.', tags: ['suppliers'] }])
})

story('events: who changed access and policy', async (t, { page }) => {
  await visit(page, at('events'))
  await page.locator('.chip-bad', { hasText: 'removed' }).first().waitFor()
  await picture(page, 'events')
  const text = await page.locator('main').innerText()
  t.match(text, /owner@\S+\s+changed the instructions/)
  t.notMatch(text, /[0-9a-f]{8}-[0-9a-f]{4}-/, 'names stand in place of ids')
})

story(
  'passes: what was extracted, tagged, reconciled, and what was kept back',
  async (t, { page }) => {
    await visit(page, at('passes'))
    await picture(page, 'passes')
    const text = await page.locator('main').innerText()
    t.match(text, /added.*The supplier asks for a deposit/)
    t.match(text, /Would replace: The Q3 budget was cut by a tenth\./)
    t.match(text, /Nothing to share was found in it\./)
    t.notMatch(text, /^Nothing$/m, 'one sentence in place of three empty passes')
    t.match(text, /Searched: given 1 memory, 1 relevant kept from it\./)
    t.match(text, /2 permitted, 1 kept back/)
    await page.getByText('What was kept from it').click()
    await page.getByText('The new logo is blue.').first().waitFor()
    await page.getByText('Some of what their roles do not allow').click()
    await page.getByText('A memory that is deleted').waitFor()
    t.same(await barriersOf(page), [])
  },
)

story('settings: changed, and the organization removed after typing so', async (t, { page }) => {
  await visit(page, at('settings'))
  await page.getByLabel('Name').fill('Acme Works')
  await page.getByText('Nothing new is shared').waitFor()
  await page.getByLabel('Key for openai').fill('sk-0123456789abcdef')
  await press(page, 'Save', { exact: true })
  await page.getByText('The settings are saved.').waitFor()
  await page.getByText(/The account has sk-…cdef/).waitFor()
  await settled(page)
  await picture(page, 'settings')
  t.equal((await admin.get(path)).body.name, 'Acme Works')
  t.equal(await page.title(), 'Settings · Acme Works · Memory Vault')
  t.notMatch(await page.locator('main').innerText(), /has no key for openai/)
  const download = page.waitForEvent('download')
  await press(page, 'Download export')
  const lines = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\n')
  t.match(JSON.parse(lines[0]!), { type: 'organization', org_id: org, name: 'Acme Works' })
  t.match(JSON.parse(lines.at(-1)!), { type: 'end', lines: lines.length - 1 })
  await press(page, 'Remove')
  const dialog = page.getByRole('dialog')
  await press(dialog, 'Remove')
  t.equal(await dialog.count(), 1, 'not before it is typed')
  await dialog.getByLabel(/^Type/).fill('remove')
  await press(dialog, 'Remove')
  await page.getByText('The organization is removed.').waitFor()
  t.equal((await admin.get(path)).status, 404)
})

story('service: figures and queues, for the operator', async (t, { page }) => {
  await visit(page, 'service')
  await picture(page, 'service')
  const text = await page.locator('main').innerText()
  t.match(text, /Requests\s+\d+/)
  await visit(page, 'service/queues')
  await page.getByRole('link', { name: 'ingest', exact: true }).waitFor()
})

story('service: tenants are found, and lead to their work', async (t, { page }) => {
  const email = 'rosa.of.the.orchard@example.com'
  const owner = createTestClient(base, await buildKey(backend, email))
  await owner.post('/v1/memory/ingest', { messages: [{ role: 'user', content: 'a quiet word' }] })
  await visit(page, 'service/tenants')
  await page.getByLabel('Find by email').fill('ORCHARD')
  const row = page.getByRole('article')
  await waitUntil('the others are gone', async () => (await row.count()) === 1)
  await settled(page)
  await picture(page, 'service-tenants')
  t.match(await row.innerText(), /rosa\.of\.the\.orchard@example\.com[^]+1 key, 1 vault/)

  await press(page, `Billing: ${email}`)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('May upload').uncheck()
  await dialog.getByLabel('Tokens left').fill('5000')
  await press(dialog, 'Save')
  await row.getByText('no card').waitFor()
  const { status, body } = await owner.post('/v1/memory/upload', '{"content":"a line"}')
  t.match({ status, body }, { status: 402, body: { hint: /page Tenants/ } })

  await row.getByRole('link', { name: `Operations: ${email}` }).click()
  await page.getByRole('heading', { name: 'Operations of the service' }).waitFor()
  await settled(page)
  t.equal(await row.count(), 1)
  t.match(await row.innerText(), /Store what was said/)
  t.notMatch(await page.locator('main').innerText(), /quiet word/)
  await page.getByRole('link', { name: 'Show all' }).click()
  await press(page, 'All', { exact: true })
  await waitUntil('those of others too', async () => (await row.count()) > 1)
  await press(page, /^Failed/)
  await page.getByText('Nothing failed').waitFor()
  await picture(page, 'service-operations')
})

story('service: usage of all tenants, drawn and in numbers', async (t, { page }) => {
  await visit(page, 'service/usage')
  await page.locator('.history-bars').first().waitFor()
  await picture(page, 'service-usage')
  t.equal(await page.locator('.history-bars').count(), 3)
  t.match(await page.locator('main').innerText(), /Requests\s+\d+/)
})
