import t from 'tap'
import { look, noBrowser, openBrowser, openTab, signIn, visit } from '#test/console/browser.ts'
import { fillTeam } from '#test/console/stories.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const skip = noBrowser
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const { org, adminKey } = await fillTeam(backend, base)
await createTestClient(base, await buildKey(backend)).post('/v1/memory/ingest?wait=true', {
  messages: [{ role: 'user', content: 'work of a tenant' }],
})
const browser = skip ? null : await openBrowser(t)

const ofOrg = [
  'review',
  'memories',
  'members',
  'roles',
  'tags',
  'instructions',
  'audit',
  'events',
  'passes',
  'settings',
]

const ofService = ['service', 'service/tenants', 'service/usage', 'service/operations']

for (const theme of ['light', 'dark'] as const) {
  t.test(
    `${theme}: pages of a team have no serious barrier, and fit a phone`,
    { skip },
    async t => {
      const { page, faults, strangers } = await openTab(browser!, base, { theme })
      await signIn(page, adminKey)
      for (const name of ['orgs', ...ofOrg, ...ofService]) {
        await visit(page, ofOrg.includes(name) ? `orgs/${org}/${name}` : name)
        await look(t, page, `${theme}-org-${name.replace('/', '-')}`)
      }
      t.same(faults, [])
      t.same(strangers, [])
    },
  )
}
