import type { IncomingMessage } from 'node:http'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { requireUtf8 } from '#api/edge/body.ts'
import { createToolCaller } from '#api/mcp/tool-caller.ts'
import { authenticateRequest } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Headers of an MCP request that say whose vault it is, and from where it is asked. */
const forwardedHeaders = ['authorization', 'x-api-key', 'x-memory-key', 'traceparent']

/**
 * The vault as tools, over MCP's streamable HTTP: stateless, so any process answers any request. The
 * same keys, suffixes, limits and bills as everywhere.
 */
export function mcp(router: Router, backend: Backend): void {
  let listener: ReturnType<typeof openMcpListener> | undefined
  router.all('/mcp', async ctx => {
    rejectForeignOrigin(ctx)
    await authenticateRequest(ctx, backend)
    requireUtf8(ctx)
    const listen = await (listener ??= openMcpListener(backend))
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  })
}

/** Loaded at the first request: 34 MB that most processes never need. */
async function openMcpListener({ log }: Backend) {
  const [{ getRequestListener }, { createMcpHandler }, { createMcpServer: vaultServer }] =
    await Promise.all([
      import('@hono/node-server'),
      import('@modelcontextprotocol/server'),
      import('#api/mcp/server.ts'),
    ])
  const handler = createMcpHandler(
    ({ authInfo }) => vaultServer(createToolCaller(...(authInfo!.extra!.way as LoopbackTarget))),
    { onerror: error => log.warn({ err: error }, 'mcp.failed') },
  )
  return getRequestListener(
    (request, { incoming }) =>
      handler.fetch(request, {
        authInfo: { token: '', clientId: '', scopes: [], extra: { way: loopbackTarget(incoming) } },
      }),
    { overrideGlobalObjects: false },
  )
}

/** A page of another site must not use a key that a browser was trusted with. */
function rejectForeignOrigin(ctx: Context): void {
  const origin = ctx.get('origin')
  if (origin === '' || (URL.canParse(origin) && new URL(origin).host === ctx.host)) return
  throw new Refusal('forbidden', 'This Origin may not use the MCP endpoint')
}

/** How a tool reaches the service, and as whom. */
type LoopbackTarget = [base: string, headers: Record<string, string>]

/** The service is found at the address this request reached; no header can name another. */
function loopbackTarget({
  socket,
  headers,
}: Pick<IncomingMessage, 'socket' | 'headers'>): LoopbackTarget {
  const { localAddress = '127.0.0.1', localPort = 80 } = socket
  const host = localAddress.includes(':') ? `[${localAddress}]` : localAddress
  const forwarded = forwardedHeaders.flatMap(name => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return [`http://${host}:${localPort}`, Object.fromEntries(forwarded)]
}
