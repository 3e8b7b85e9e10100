import t from 'tap'
import type { Page } from 'playwright-core'
import { noBrowser, openTab, settled, signIn } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam, fillVault } from '#test/console/stories.ts'
import { sampleQueues } from '#shared/storage/queue/queue-samples.postgres.ts'

const { backend, key, api, base } = await startConsole(t)
await fillVault(backend, api, key)
const { org, adminKey } = await fillTeam(backend, base)
const day = 24 * 3_600_000
for (let at = Date.now() - day; at < Date.now(); at += 300_000)
  await sampleQueues(backend.postgres.query, at)

/** What a page may load from an empty cache, scripts and styles and answers together. */
const bytesMax = 200_000
/** Requests for data, those of the sign-in included. */
const callsMax = 12

const hrefsOf = async (page: Page, selector: string): Promise<string[]> =>
  Promise.all((await page.locator(selector).all()).map(async a => (await a.getAttribute('href'))!))

for (const [credential, first] of [
  [key, 'overview'],
  [adminKey, `orgs/${org}/review`],
] as const) {
  t.test(`pages from ${first} on are light from an empty cache`, { skip: noBrowser }, async t => {
    const { page: index } = await openTab(t, base)
    await signIn(index, credential, `/console#/${first}`)
    await settled(index)
    const addresses = new Set<string>()
    // An entry may take others away, as one that leads from a team to the service does: each is visited by its address.
    const entries = await hrefsOf(index, '#places a')
    for (const entry of entries) {
      await index.evaluate(hash => (location.hash = hash), entry)
      await settled(index)
      for (const href of await hrefsOf(index, '#places a, .page-tabs a')) addresses.add(href)
    }
    t.ok(addresses.size > 10, `${addresses.size} pages`)
    for (const address of addresses) {
      const { page, bytes } = await openTab(t, base)
      let calls = 0
      page.on('request', request => {
        if (new URL(request.url()).pathname.startsWith('/v1/')) calls++
      })
      await signIn(page, credential, `/console${address}`)
      await settled(page)
      const loaded = await bytes()
      t.ok(loaded < bytesMax, `${address}: ${loaded} bytes`)
      t.ok(calls <= callsMax, `${address}: ${calls} calls`)
      await page.context().close()
    }
  })
}
