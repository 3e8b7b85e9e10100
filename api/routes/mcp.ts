import type { IncomingMessage } from 'node:http'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { requireUtf8 } from '#api/edge/body.ts'
import { createToolCaller } from '#api/mcp/tool-caller.ts'
import { authenticateCaller } from '#api/edge/memory-key-auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Headers of an MCP request that its tool calls carry on: the credential and the trace. */
const forwardedHeaders = ['authorization', 'x-api-key', 'x-memory-key', 'traceparent']

/**
 * The vault as tools, over MCP's streamable HTTP: stateless, so any process answers any request. Keys,
 * suffixes, limits and bills are those of the endpoints that the tools call.
 */
export function mcp(router: Router, backend: ApiBackend): void {
  let listener: ReturnType<typeof openMcpListener> | undefined
  router.all('/mcp', async ctx => {
    rejectForeignOrigin(ctx)
    await authenticateCaller(ctx, backend)
    requireUtf8(ctx)
    const listen = await (listener ??= openMcpListener(backend))
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  })
}

/** Loads the MCP server at the first request: 34 MB that most processes never need. */
async function openMcpListener({ log }: Pick<ApiBackend, 'log'>) {
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

/** A page of another site must not use a key that a browser stores. */
function rejectForeignOrigin(ctx: Context): void {
  const origin = ctx.get('origin')
  if (origin === '' || (URL.canParse(origin) && new URL(origin).host === ctx.host)) return
  throw new Refusal('forbidden', 'This Origin may not use the MCP endpoint')
}

/** How a tool reaches the service, and with which credential. */
type LoopbackTarget = [base: string, headers: Record<string, string>]

/** Tools call the address that this request reached; no header can name another. */
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
