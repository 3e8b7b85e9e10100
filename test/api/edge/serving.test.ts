import Koa from 'koa'
import t from 'tap'
import { createHttpServer } from '#api/edge/server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { listen } from '#test/support/start/listen.ts'

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
    const server = createHttpServer(app)
    const origin = await listen(t, server)
    t.equal(server.serving, false)
    const answer = fetch(origin)
    await begun.promise
    t.equal(server.serving, true)
    held.resolve()
    t.equal(await (await answer).text(), 'done')
    await waitUntil('nothing is left', () => !server.serving)
  },
)
