import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import t from 'tap'
import { collectBody } from '#api/edge/body-stream.ts'
import { listen } from '#test/support/start/listen.ts'

/** What arrives of a body takes memory until the body is whole, or given up: then it is free at once. */

const never = new Promise<never>(() => {})

t.test('the chunks of a body are freed when it is whole, and when its client leaves', async t => {
  for (const isWhole of [true, false]) {
    const chunks: Buffer[] = []
    let arrived = (): void => {}
    const server = createServer()
    const base = await listen(t, server)
    const sending = request(base, { method: 'POST' }).on('error', () => {})
    sending.write(Buffer.alloc(300_000, 'x'))
    const [req] = (await once(server, 'request')) as [IncomingMessage]
    const half = new Promise<void>(resolve => (arrived = resolve))
    const collected = collectBody(
      { req } as Context,
      chunk => {
        chunks.push(chunk)
        if (chunks.reduce((sum, { length }) => sum + length, 0) === 300_000) arrived()
      },
      never,
    )
    await half
    t.ok(chunks.every(({ length }) => length > 0))
    if (isWhole) {
      sending.end()
      t.same(await collected, Buffer.alloc(300_000, 'x'))
    } else {
      sending.destroy()
      await t.rejects(collected, { code: 'ECONNRESET' })
    }
    t.same(new Set(chunks.map(({ length }) => length)), new Set([0]))
  }
})
