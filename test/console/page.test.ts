import { createHash } from 'node:crypto'
import t from 'tap'
import { startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const api = await startTestApi(t, await createTestBackend(t))

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
    t.notMatch(text, /<style|style=/, 'no inline style')
    const [, script] = /^[^]*?<script data-[^>]*>([^]*?)<\/script>([^]*)$/.exec(text)!
    t.match(policy, `'sha256-${createHash('sha256').update(script!).digest('base64')}'`)
    t.notMatch(
      text.replace(script!, ''),
      /<script(?! data-entry)/,
      'and one script, known by its hash',
    )
  }
})

t.test('200: modules come without their types, and name only what is served', async t => {
  const page = await (await get('/console')).text()
  const modules = /data-modules="([^"]+)"/.exec(page)![1]!.split(' ')
  t.ok(modules.length > 50)
  const seen = new Set(modules)
  for (const path of seen) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    t.match(response.headers.get('content-type'), /^text\/javascript/)
    const text = await response.text()
    t.notMatch(text, /^import type|sourceMappingURL/m, path)
    // Its texts are programs of others, with their imports.
    const source = /\.json(\.js)?$/.test(path) ? '' : text
    const named = source.matchAll(/(?:\bfrom ?|\bimport ?\(?)(['"])([\w#/.-]+)\1/g)
    for (const [, , name] of named) {
      seen.add(name!.startsWith('.') ? new URL(name!, api.base + path).pathname : name!)
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
