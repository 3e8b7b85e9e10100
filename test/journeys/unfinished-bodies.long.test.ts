import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startWeb } from '#test/support/start/processes.ts'

/* Bodies that never end hold a bounded memory, and take nothing from other tenants. */

t.setTimeout(0)

const mebibyte = 1024 * 1024
/**
 * The bound of all unfinished bodies (512), the process itself (250), and garbage of those that were dropped. Without
 * the bound 60 bodies of 19 MiB take 1,400, two tenants 2,700.
 */
const residentMaxMebibytes = 1_500

/** How requests begin that do not end. */
const unfinished: [name: string, path: string, type: string, start: string][] = [
  ['JSON', '/v1/memory/ingest', 'application/json', '{"messages":[{"role":"user","content":"'],
  ['small JSON', '/v1/memory/search', 'application/json', '{"query":"'],
  ['JSON without a limit', '/v1/chat/completions?memory=off', 'application/json', '{"messages":"'],
  [
    'a form',
    '/v1/images/edits',
    'multipart/form-data; boundary=b',
    '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\n',
  ],
  ['a line', '/v1/memory/import', 'application/x-ndjson', '{"id":"'],
]

const provider = await startModelProvider(t)
const backend = await createTestBackend(t, { env: provider.env })
const web = await startWeb(t, backend.config, { ...provider.env, RATE_LIMITS: 'off' })
const greedy = await (await createProxyAccount(backend, web.base)).newKey()
const other = createTestClient(web.base, await buildKey(backend))
const question = { messages: [{ role: 'user', content: 'Ada '.repeat(mebibyte / 2) }] }

const residentMebibytes = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${web.pid}/status`, 'utf8'))![1]) / 1024

for (const [name, path, type, start] of unfinished) {
  t.test(name, async t => {
    const statuses: number[] = []
    const before = residentMebibytes()
    const bodies = Array.from({ length: 60 }, () => {
      const body = request(web.base + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${greedy}`, 'content-type': type },
      })
      body.on('error', () => {})
      body.on('response', response => void statuses.push(response.resume().statusCode!))
      body.write(start)
      return body
    })
    const piece = Buffer.alloc(mebibyte, 'x')
    for (let sent = 0; sent < 19; sent++) {
      for (const body of bodies) {
        if (body.writable) await new Promise<unknown>(resolve => body.write(piece, resolve))
      }
    }
    const resident = residentMebibytes()
    const { status } = await other.post('/v1/memory/prepare', question)
    t.comment(
      `${before.toFixed(0)} MiB before, ${resident.toFixed(0)} with them; answers ${statuses.join(' ')}`,
    )
    t.equal(status, 200, 'another tenant is served')
    t.ok(
      statuses.every(answer => [400, 413, 503].includes(answer)),
      statuses.join(' '),
    )
    t.ok(resident < residentMaxMebibytes, `${resident.toFixed(0)} MiB`)
    for (const body of bodies) body.destroy()
  })
}
