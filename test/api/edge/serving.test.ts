import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import t from 'tap'
import { createHttpServer } from '#api/edge/server.ts'
import { waitUntil } from '#test/support/wait-until.ts'

t.test(
  'a server is serving from the first byte of a request to the last of its response',
  async t => {
    const begun = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const app = new Koa().use(async ctx => {
      begun.resolve()
      await held.promise
      ctx.body = 'done'
    })
    const server = createHttpServer(app).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    t.equal(server.serving, false)
    const answer = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await begun.promise
    t.equal(server.serving, true)
    held.resolve()
    t.equal(await (await answer).text(), 'done')
    await waitUntil('nothing is left', () => !server.serving)
  },
)
