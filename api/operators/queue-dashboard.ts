import type { Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createDashboardHandler } from '@pg-boss/dashboard/handler'
import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { schema } from '#shared/queue/queue.ts'

const basePath = '/admin/queues'

/** The page brings its scripts inline; fonts of another host are refused, which it survives. */
const policy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; connect-src 'self'; base-uri 'self'; frame-ancestors 'none'"

type Listener = ReturnType<typeof getRequestListener>

/** pg-boss's own dashboard, opened at the first visit and closed with the server. */
export function queueDashboard({ config, log }: Backend): (ctx: Context) => Promise<void> {
  let listener: Listener | undefined

  const open = (server: Server): Listener => {
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
    ctx.respond = false
    await listener(ctx.req, ctx.res)
  }
}
