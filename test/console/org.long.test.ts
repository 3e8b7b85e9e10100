import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  barriersOf,
  noBrowser,
  openBrowser,
  openTab,
  picture,
  settled,
  signIn,
  visit,
} from '#test/console/browser.ts'
import { fillTeam } from '#test/console/stories.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const { org, path, adminKey, admin, waiting } = await fillTeam(backend, base)
const browser = skip ? null : await openBrowser(t)
const tab = browser && (await openTab(browser, base))
if (tab) await signIn(tab.page, adminKey)

const at = (name: string): string => `orgs/${org}/${name}`

t.test('organizations: they are listed, and a new one tells its key once', { skip }, async t => {
  const { page } = tab!
  await settled(page)
  await page.getByRole('button', { name: 'New organization' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Acme Research')
  await page.getByRole('button', { name: 'Create' }).click()
  t.match(await page.locator('.secret').innerText(), /^mk_/)
  await page.getByRole('button', { name: 'I have kept it' }).click()
  await page.getByText('No members yet').waitFor()
  await visit(page, 'orgs')
  await page.getByRole('link', { name: /Acme Research/ }).waitFor()
  await picture(page, 'orgs')
  t.equal((await admin.get('/v1/orgs')).body.orgs.length, 2)
})

t.test('review: decided, tagged and undone by keys alone', { skip }, async t => {
  const { page } = tab!
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

t.test('tags and roles: made, changed and removed', { skip }, async t => {
  const { page } = tab!
  const dialog = page.getByRole('dialog')
  await visit(page, at('tags'))
  await page.getByRole('button', { name: 'New tag' }).click()
  await dialog.getByLabel('Label').fill('finance')
  await dialog
    .getByLabel('Examples', { exact: true })
    .fill('The budget was cut.\nRosa got a raise.')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('2 examples').waitFor()
  await picture(page, 'tags')
  const { tags } = (await admin.get(`${path}/tags`)).body
  t.match(
    tags.find(({ label }: { label: string }) => label === 'finance'),
    { label: 'finance', examples: [/budget/, /Rosa/] },
  )

  await visit(page, at('roles'))
  await picture(page, 'roles')
  await page.getByRole('button', { name: 'Edit Board' }).click()
  await dialog.getByLabel('Every tag there is and will be').uncheck()
  await dialog.getByLabel('finance').check()
  await picture(page, 'role-form')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const roles = async () => (await admin.get(`${path}/roles`)).body.roles
  t.match(
    (await roles()).find(({ name }: { name: string }) => name === 'Board'),
    { allowed_tags: ['finance'] },
  )
  await page.getByRole('button', { name: 'Remove Board' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await dialog.waitFor({ state: 'detached' })
  t.equal((await roles()).length, 1)
})

t.test('tags: one is applied to what is shared, and its progress is shown', { skip }, async t => {
  const { page } = tab!
  const dialog = page.getByRole('dialog')
  await visit(page, at('tags'))
  await page.getByRole('button', { name: 'Apply jade to shared memories' }).click()
  await dialog.getByText('memories to check').waitFor()
  t.match(await dialog.innerText(), /4 memories to check: 1 model call, about \d+ input tokens/)
  t.same(await barriersOf(page), [])
  await picture(page, 'tag-apply')
  await dialog.getByRole('button', { name: 'Check 4 memories' }).click()
  // The organization has no key for its models: the run waits, and says why.
  await dialog.getByText('Waiting:').waitFor()
  t.match(await dialog.innerText(), /Checked 0 of 4 memories\.\s+0 got the tag/)
  t.equal(await dialog.getByRole('progressbar').count(), 1)
  t.same(await barriersOf(page), [])
  await picture(page, 'tag-apply-running')
  await dialog.getByRole('button', { name: 'Close' }).click()
  await dialog.waitFor({ state: 'detached' })
})

t.test(
  'members: added with roles, given a key, which is shown again and revoked',
  { skip },
  async t => {
    const { page } = tab!
    const dialog = page.getByRole('dialog')
    await visit(page, at('members'))
    await page.getByRole('button', { name: 'Add a member' }).click()
    await dialog.getByLabel('Email').fill('ben@example.com')
    await dialog.getByLabel('First name').fill('Ben')
    await dialog.getByLabel('Accounting').check()
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('button', { name: 'New key for ben@example.com' }).click()
    const key = await page.locator('.secret').innerText()
    await page.getByRole('button', { name: 'I have kept it' }).click()
    await settled(page)
    await picture(page, 'members')
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 200)

    await page.getByLabel('Find by member or key').fill('ben@')
    const row = page.locator('article:has(code)')
    await page.waitForFunction(() => document.querySelectorAll('article code').length === 1)
    await row.getByRole('button', { name: /^Show the key/ }).click()
    t.equal(await page.locator('.secret').innerText(), key)
    await page.getByRole('button', { name: 'I have kept it' }).click()
    await row.getByRole('button', { name: /^Revoke/ }).click()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('revoked', { exact: true }).waitFor()
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 401)
  },
)

t.test('instructions: rules are added and kept', { skip }, async t => {
  const { page } = tab!
  await visit(page, at('instructions'))
  await page.getByLabel('Your own').fill('Keep decisions and their reasons.')
  await page.getByRole('button', { name: 'Add a rule' }).first().click()
  await page.getByLabel('What it is about').fill('salaries')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The instructions are saved.').waitFor()
  await settled(page)
  await picture(page, 'instructions')
  t.match((await admin.get(`${path}/instructions`)).body, {
    custom: 'Keep decisions and their reasons.',
    anti_rules: [{ match: 'salaries' }],
  })
})

t.test(
  'shared memories: seeded, searched, changed, deleted, and brought back',
  { skip },
  async t => {
    const { page } = tab!
    const dialog = page.getByRole('dialog')
    await visit(page, at('memories'))
    await picture(page, 'shared-memories')
    await page.getByRole('button', { name: 'Seed a memory' }).click()
    await dialog.getByLabel('Text').fill('The canteen is closed on Fridays.')
    t.ok(await page.evaluate(() => document.activeElement?.matches('textarea')), 'ready to write')
    await dialog.getByLabel('suppliers').check()
    await dialog.getByRole('button', { name: 'Share' }).click()
    const card = page.locator('article', { hasText: 'canteen' })
    await card.getByText('suppliers', { exact: true }).waitFor()
    await card.getByRole('button', { name: /^Edit/ }).click()
    await dialog.getByLabel('Text').fill('The canteen is open on Fridays.')
    await dialog.getByLabel('suppliers').uncheck()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await card.getByText('open on Fridays').waitFor()
    await card.getByRole('button', { name: /^History/ }).click()
    await dialog.getByText('The canteen is closed on Fridays.').first().waitFor()
    await picture(page, 'history')
    await dialog.getByRole('button', { name: 'Bring this back' }).click()
    await page.getByText('The memory is as it was.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await card.getByText('closed on Fridays').waitFor()
    await card.getByRole('button', { name: /^Delete/ }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
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

t.test('audit: who changed what, and what a deleted memory said', { skip }, async t => {
  const { page } = tab!
  await visit(page, at('audit'))
  await picture(page, 'audit')
  await page.getByLabel('What').selectOption('delete')
  await page.waitForFunction(() => document.querySelectorAll('article').length === 1)
  await page.getByRole('button', { name: /^History/ }).click()
  await page.getByRole('dialog').getByText('Deleted', { exact: true }).waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Bring this back' }).first().click()
  await page.getByText('The memory is as it was.').waitFor()
  // What the page says may still be about the memory before: what the service says is waited for.
  const found = async () => (await admin.get(`${path}/memories?q=canteen&limit=1`)).body.items
  await waitUntil('it is back', async () => (await found()).length === 1)
  t.match(await found(), [{ text: 'The canteen is closed on Fridays.', tags: ['suppliers'] }])
})

t.test('events: who changed access and policy', { skip }, async t => {
  const { page } = tab!
  await visit(page, at('events'))
  await page.getByText('Role removed').first().waitFor()
  await picture(page, 'events')
  const text = await page.locator('main').innerText()
  t.match(text, /Instructions changed/)
  t.match(text, /by owner@/)
})

t.test(
  'passes: what was extracted, tagged, reconciled, and what was kept back',
  { skip },
  async t => {
    const { page } = tab!
    await visit(page, at('passes'))
    await picture(page, 'passes')
    const text = await page.locator('main').innerText()
    t.match(text, /ADD.*The supplier asks for a deposit/)
    t.match(text, /2 permitted, 1 kept back/)
  },
)

t.test('settings: changed, and the organization removed after typing so', { skip }, async t => {
  const { page } = tab!
  await visit(page, at('settings'))
  await page.getByLabel('Name').fill('Acme Works')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The settings are saved.').waitFor()
  await settled(page)
  await picture(page, 'settings')
  t.equal((await admin.get(path)).body.name, 'Acme Works')
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download export' }).click()
  const lines = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\n')
  t.match(JSON.parse(lines[0]!), { type: 'organization', org_id: org, name: 'Acme Works' })
  t.match(JSON.parse(lines.at(-1)!), { type: 'end', lines: lines.length - 1 })
  await page.getByRole('button', { name: 'Remove' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Remove' }).click()
  t.equal(await dialog.count(), 1, 'not before it is typed')
  await dialog.getByLabel(/^Type/).fill('remove')
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('The organization is removed.').waitFor()
  t.equal((await admin.get(path)).status, 404)
})

t.test('service: queues and figures, for the operator', { skip }, async t => {
  const { page } = tab!
  await visit(page, 'service')
  await picture(page, 'service')
  const text = await page.locator('main').innerText()
  t.match(text, /ingest\s+0 waiting, 0 active/)
  t.match(text, /Requests\s+\d+/)
  t.equal(
    await page.getByRole('link', { name: 'Queues', exact: true }).getAttribute('href'),
    '/admin/queues',
  )
})

t.test('service: tenants are found, and lead to their work', { skip }, async t => {
  const { page } = tab!
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

  await row.getByRole('link', { name: `Operations of ${email}` }).click()
  await page.getByRole('heading', { name: 'Operations of the service' }).waitFor()
  await settled(page)
  t.equal(await row.count(), 1)
  t.match(await row.innerText(), /ingest/)
  t.notMatch(await page.locator('main').innerText(), /quiet word/)
  await page.getByRole('link', { name: 'Show all' }).click()
  await waitUntil('those of others too', async () => (await row.count()) > 1)
  await page.getByLabel('State').selectOption('failed')
  await page.getByText('Nothing matches.').waitFor()
  await picture(page, 'service-operations')
})

t.test('service: usage of all tenants, drawn and in numbers', { skip }, async t => {
  const { page } = tab!
  await visit(page, 'service/usage')
  await page.locator('.chart canvas').first().waitFor()
  await picture(page, 'service-usage')
  t.equal(await page.locator('.chart canvas').count(), 3)
  t.match(await page.locator('main').innerText(), /Requests\s+\d+/)
})

t.test('all of it without a fault, and without a request to anybody else', { skip }, t => {
  t.same(tab!.faults, [])
  t.same(tab!.strangers, [])
  t.end()
})
