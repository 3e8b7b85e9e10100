import t from 'tap'
import { picture, press, settled } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { backend, key, api, test } = await startConsole(t)

const policy = async () => (await api.get('/v1/account/policy')).body

test('policy: private data is replaced and memories end, or not any more', async (t, { open }) => {
  const page = await open(key, 'policy')
  await page.getByLabel('Private data in what is stored').selectOption('redact')
  await page.getByLabel('Email addresses').check()
  await page.getByLabel('Days that memories are kept').fill('30')
  await picture(page, 'policy')
  await press(page, 'Save')
  await waitUntil('it is decided', async () => (await policy()).retention_days === 30)
  t.match(await policy(), { redaction: { mode: 'redact' }, decided_by: 'account' })
  t.ok((await policy()).redaction.kinds.includes('email'))
  // The form is made again of what was saved.
  await settled(page)

  await page.getByLabel('Private data in what is stored').selectOption('off')
  await page.getByLabel('Days that memories are kept').fill('')
  await press(page, 'Save')
  await waitUntil('it is taken back', async () => (await policy()).retention_days === null)
  t.match(await policy(), { redaction: { mode: 'off' } })
})

test('policy: an organization decides for itself, or as its account does', async (t, { open }) => {
  const { admin, key: adminKey, org, path } = await buildOrg(backend, api.base)
  const page = await open(adminKey, `orgs/${org}/settings`)
  await page.getByLabel('Decide apart from the account').check()
  await page.getByLabel('Private data in what is stored').selectOption('block')
  const form = page.locator('form', { hasText: 'Decide apart' })
  await press(form, 'Save the rules')
  const decider = async () => (await admin.get(`${path}/policy`)).body.decided_by
  await waitUntil('it is decided', async () => (await decider()) === 'organization')
  await settled(page)
  await page.getByLabel('Decide apart from the account').uncheck()
  await press(form, 'Save the rules')
  await waitUntil('it is taken back', async () => (await decider()) !== 'organization')
  t.equal(await decider(), 'default')
})
