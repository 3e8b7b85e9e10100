import type { Server } from 'node:http'
import type { getRequestListener } from '@hono/node-server'
import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

const basePath = '/admin/queues'

/** The page brings its scripts inline. */
const contentSecurityPolicy =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline' data:; " +
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
      databases: [{ url: config.databaseUrl, name: 'Memory Vault', schema: pgBossSchema }],
      basePath,
    })
    server.once('close', () => {
      Promise.resolve(handler.close()).catch((error: unknown) =>
        log.warn({ err: error }, 'dashboard.close-failed'),
      )
    })
    const handleWithoutRemoteFonts = async (request: Request) =>
      stripRemoteFonts(await handler(request))
    return getRequestListener(handleWithoutRemoteFonts, { overrideGlobalObjects: false })
  }

  return async ctx => {
    listener ??= open((ctx.req.socket as unknown as { server: Server }).server)
    ctx.set('Content-Security-Policy', contentSecurityPolicy)
    const listen = await listener
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  }
}

/**
 * The page without its links to fonts of another host, which would learn who visits it. The page's script
 * renders it again and needs the same replacement.
 */
async function stripRemoteFonts(response: Response): Promise<Response> {
  const { status, statusText, headers } = response
  if (!/html|javascript/.test(headers.get('content-type') ?? '')) return response
  const text = (await response.text())
    .replaceAll(/https:\/\/fonts\.googleapis\.com\/css2[^"'`\s]*/g, 'data:text/css,')
    .replaceAll(/https:\/\/fonts\.(?:googleapis|gstatic)\.com/g, basePath)
  const responseHeaders = new Headers(headers)
  responseHeaders.delete('content-length')
  return new Response(text, { status, statusText, headers: responseHeaders })
}
