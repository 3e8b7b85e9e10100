import { once } from 'node:events'
import { createServer, request } from 'node:http'
import Koa from 'koa'
import t from 'tap'
import { readJson } from '#api/edge/body.ts'
import { handleErrors } from '#api/edge/errors.ts'
import type { Log } from '#shared/core/log.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { listen } from '#test/support/start/listen.ts'

t.test(
  'a client that leaves while its whole body waits to be read is no failure of the service',
  async t => {
    const logged: unknown[] = []
    const note = (entry: unknown): void => void logged.push(entry)
    const app = new Koa()
    app.use(handleErrors({ error: note, warn: note } as unknown as Log))
    const failed = Promise.withResolvers<Error & { code?: string }>()
    app.use(async ({ req }) => {
      await waitUntil('the body has arrived', () => req.complete)
      leave()
      await once(req, 'error').then(([error]) => {
        failed.resolve(error as Error)
        throw error as Error
      })
    })
    const server = createServer((req, res) => void app.callback()(req, res))
    const sending = request(await listen(t, server), { method: 'POST' })
    sending.on('error', () => {})
    const leave = (): void => void sending.destroy()
    sending.end('a body')
    t.equal((await failed.promise).code, 'ECONNRESET')
    await new Promise(resolve => setImmediate(resolve))
    t.same(logged, [])
  },
)

t.test('nor one that has left before its body is read', async t => {
  const logged: unknown[] = []
  const note = (entry: unknown): void => void logged.push(entry)
  const app = new Koa()
  app.use(handleErrors({ error: note, warn: note } as unknown as Log))
  let answered = 0
  for (const size of ['small', 'large'] as const) {
    app.use(async (ctx, next) => {
      if (ctx.path !== `/${size}`) return next()
      const left = new Promise(resolve => ctx.req.once('close', resolve))
      ctx.req.on('error', () => {})
      await waitUntil('the body has arrived', () => ctx.req.complete)
      sending.destroy()
      await left
      await readJson(ctx, size)
    })
  }
  const server = createServer((req, res) => {
    void app
      .callback()(req, res)
      .then(() => answered++)
  })
  const origin = await listen(t, server)
  let sending: ReturnType<typeof request>
  for (const [index, size] of ['small', 'large'].entries()) {
    const headers = { 'content-type': 'application/json' }
    sending = request(`${origin}/${size}`, { method: 'POST', headers })
    sending.on('error', () => {})
    sending.end('{}')
    await waitUntil('it has been answered', () => answered > index)
  }
  t.same(logged, [])
})
