import t from 'tap'
import { noBrowser, openBrowser, openTab, picture, signIn, visit } from '#test/console/browser.ts'
import { buildOrg } from '#test/support/admin.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)
const browser = skip ? null : await openBrowser(t)

const policy = async () => (await api.get('/v1/account/policy')).body

t.test('policy: private data is replaced and memories end, or not any more', { skip }, async t => {
  const { page, faults } = await openTab(browser!, api.base)
  await signIn(page, key)
  await visit(page, 'policy')
  await page.getByLabel('Private data in what is stored').selectOption('redact')
  await page.getByLabel('Email addresses').check()
  await page.getByLabel('Days that memories are kept').fill('30')
  await picture(page, 'policy')
  await page.getByRole('button', { name: 'Save' }).click()
  await waitUntil('it is decided', async () => (await policy()).retention_days === 30)
  t.match(await policy(), { redaction: { mode: 'redact' }, decided_by: 'account' })
  t.ok((await policy()).redaction.kinds.includes('email'))

  await page.getByLabel('Private data in what is stored').selectOption('off')
  await page.getByLabel('Days that memories are kept').fill('')
  await page.getByRole('button', { name: 'Save' }).click()
  await waitUntil('it is taken back', async () => (await policy()).retention_days === null)
  t.match(await policy(), { redaction: { mode: 'off' } })
  t.same(faults, [])
})

t.test('policy: an organization decides for itself, or as its account does', { skip }, async t => {
  const { admin, key: adminKey, org, path } = await buildOrg(backend, api.base)
  const { page } = await openTab(browser!, api.base)
  await signIn(page, adminKey)
  await visit(page, `orgs/${org}/settings`)
  await page.getByLabel('Decide apart from the account').check()
  await page.getByLabel('Private data in what is stored').selectOption('block')
  const form = page.locator('form', { hasText: 'Decide apart' })
  await form.getByRole('button', { name: 'Save the rules' }).click()
  const decider = async () => (await admin.get(`${path}/policy`)).body.decided_by
  await waitUntil('it is decided', async () => (await decider()) === 'organization')
  await page.getByLabel('Decide apart from the account').uncheck()
  await form.getByRole('button', { name: 'Save the rules' }).click()
  await waitUntil('it is taken back', async () => (await decider()) !== 'organization')
  t.equal(await decider(), 'default')
})
