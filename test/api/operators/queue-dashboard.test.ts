import t from 'tap'
import { operatorEmail } from '#shared/access/operator.ts'
import { noBrowser, openBrowser, openTab, picture, settled } from '#test/console/browser.ts'
import { buildAdmin } from '#test/support/admin.ts'
import { startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const { key } = await buildAdmin(backend, operatorEmail(backend.config))
const authorization = `Basic ${Buffer.from(`anyone:${key}`).toString('base64')}`

t.test('the queue dashboard asks nobody else for anything', async t => {
  const read = async (path: string): Promise<string> =>
    (await fetch(new URL(path, base), { headers: { authorization } })).text()
  const page = await read('/admin/queues')
  const scripts = new Set(page.match(/\/admin\/queues\/assets\/[\w.-]+\.js/g))
  t.ok(scripts.size > 3, `${scripts.size} scripts`)
  for (const path of ['/admin/queues', ...scripts]) {
    t.notMatch(await read(path), /googleapis|gstatic/, path)
  }
})

t.test('and no browser has anything to complain about', { skip }, async t => {
  const { page, faults, strangers } = await openTab(await openBrowser(t), base)
  await page.setExtraHTTPHeaders({ authorization })
  await page.goto('/admin/queues')
  await page.getByRole('heading').first().waitFor()
  await settled(page)
  await picture(page, 'queue-dashboard')
  t.same(faults, [])
  t.same(strangers, [])
})
