import t from 'tap'
import { noBrowser, openBrowser, openTab, settled } from '#test/console/browser.ts'
import { startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const skip = noBrowser
// The limits of a service in use: looking at the console must fit into them.
const backend = await createTestBackend(t, { env: { RATE_LIMITS: 'on' } })
const api = await startTestApi(t, backend)
const browser = skip ? null : await openBrowser(t)

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(api.base + path, { headers })

t.test('200: the page and its files, under a policy that allows nothing else', async t => {
  for (const path of ['/console', '/console/']) {
    const page = await get(path)
    t.equal(page.status, 200)
    t.match(page.headers.get('content-type'), /^text\/html/)
    const policy = page.headers.get('content-security-policy')!
    t.match(policy, "default-src 'none'")
    t.notMatch(policy, /unsafe|\*|https?:/)
    t.match(policy, "require-trusted-types-for 'script'")
    t.equal(page.headers.get('set-cookie'), null)
    const text = await page.text()
    t.notMatch(text, /https?:\/\//)
    t.notMatch(text, /<script(?![^>]* src=)|<style|style=/, 'nothing inline')
  }
})

t.test('200: modules come without their types, and name only what is served', async t => {
  const page = await (await get('/console')).text()
  const modules = [...page.matchAll(/modulepreload" href="([^"]+)"/g)].map(([, path]) => path!)
  t.ok(modules.length > 50)
  const seen = new Set(modules)
  for (const path of seen) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    t.match(response.headers.get('content-type'), /^text\/javascript/)
    const text = await response.text()
    t.notMatch(text, /^import type|sourceMappingURL/m, path)
    // Its texts are programs of others, with their imports.
    const source = path.endsWith('/sdk-snippets.ts') ? '' : text
    const named = source.matchAll(/(?:\bfrom ?|\bimport ?\(?)(['"])([\w#/.-]+)\1/g)
    for (const [, , name] of named) {
      seen.add(name!)
    }
    const again = await get(path, { 'if-none-match': response.headers.get('etag')! })
    t.equal(again.status, 304)
  }
  t.ok(!modules.includes('/console/lib/uplot.js'), 'charts come when they are asked for')
  t.ok(seen.has('/console/lib/uplot.js'))
})

t.test('404: nothing of the service beside it', async t => {
  const others = ['lib/shared/core/config.ts', 'files.ts', 'app', 'app/../files.ts', 'constructor']
  for (const path of others) t.equal((await get(`/console/${path}`)).status, 404, path)
  t.equal((await fetch(`${api.base}/console`, { method: 'POST' })).status, 405)
})

t.test(
  'what signing in and charts load is less than 160 kB, and looked at again next to nothing',
  { skip },
  async t => {
    const tab = await openTab(browser!, api.base)
    await tab.page.goto('/console')
    await settled(tab.page)
    const door = await tab.bytes()
    // The largest part that is loaded when it is asked for.
    await tab.page.evaluate(`import('/console/lib/uplot.js').then(() => undefined)`)
    await settled(tab.page)
    const all = await tab.bytes()
    t.ok(door > 20_000 && all < 160_000, `${door} bytes to sign in, ${all} in all`)
    await tab.page.reload()
    await settled(tab.page)
    t.ok((await tab.bytes()) - all < 2_000, 'the files are known by their tags')
    t.equal((await fetch(`${api.base}/console`)).status, 200, 'and cost no address its points')
  },
)

t.test('the reference is as dark as the browser', { skip }, async t => {
  const { page } = await openTab(browser!, api.base)
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.goto('/docs')
    await page.getByText('/v1/memory/search').first().waitFor({ timeout: 60_000 })
    const color = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    t.equal(color === 'rgb(28, 32, 34)', colorScheme === 'dark', `${colorScheme}: ${String(color)}`)
  }
})

t.test('the reference asks nobody else either', { skip }, async t => {
  const { page, strangers } = await openTab(browser!, api.base)
  await page.goto('/docs')
  await page.getByText('/v1/memory/search').first().waitFor({ timeout: 60_000 })
  await settled(page)
  t.same(strangers, [])
})
