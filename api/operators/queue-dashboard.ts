import type { Server } from 'node:http'
import type { getRequestListener } from '@hono/node-server'
import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { schema } from '#shared/queue/queue.ts'

const basePath = '/admin/queues'

/** The page brings its scripts inline; fonts of another host are refused, which it survives. */
const policy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; connect-src 'self'; base-uri 'self'; frame-ancestors 'none'"

type Listener = ReturnType<typeof getRequestListener>

/** pg-boss's own dashboard, loaded at the first visit (27 MB) and closed with the server. */
export function queueDashboard({ config, log }: Backend): (ctx: Context) => Promise<void> {
  let listener: Promise<Listener> | undefined

  const open = async (server: Server): Promise<Listener> => {
    const [{ getRequestListener }, { createDashboardHandler }] = await Promise.all([
      import('@hono/node-server'),
      import('@pg-boss/dashboard/handler'),
    ])
    const handler = createDashboardHandler({
      databases: [{ url: config.databaseUrl, name: 'Memory Vault', schema }],
      basePath,
    })
    server.once('close', () => {
      Promise.resolve(handler.close()).catch((error: unknown) =>
        log.warn({ err: error }, 'dashboard.close-failed'),
      )
    })
    return getRequestListener(handler, { overrideGlobalObjects: false })
  }

  return async ctx => {
    listener ??= open((ctx.req.socket as unknown as { server: Server }).server)
    ctx.set('Content-Security-Policy', policy)
    const listen = await listener
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  }
}
