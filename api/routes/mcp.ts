import type { IncomingMessage } from 'node:http'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { requireUtf8 } from '#api/edge/body.ts'
import {
  bearerChallenge,
  describeProtectedResource,
  metadataPaths,
  refusedRegistration,
} from '#api/mcp/protected-resource.ts'
import type { McpView } from '#api/mcp/server.ts'
import { createToolCaller } from '#api/mcp/tool-caller.ts'
import { toolNames } from '#api/mcp/tools.ts'
import { authenticateCaller } from '#api/edge/memory-key-auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { Refusal } from '#shared/core/errors.ts'
import { suggestName } from '#shared/core/suggest-name.ts'

/** Headers of an MCP request that its tool calls carry on: the credential, the user and the trace. */
const forwardedHeaders = [
  'authorization',
  'x-api-key',
  'x-memory-key',
  'x-memory-user',
  'traceparent',
]

/**
 * The vault as tools, over MCP's streamable HTTP: stateless, so any process answers any request. Keys,
 * suffixes, limits and bills are those of the endpoints that the tools call.
 */
export function mcp(router: Router, backend: ApiBackend): void {
  let listener: ReturnType<typeof openMcpListener> | undefined
  router.all('/mcp', async ctx => {
    rejectForeignOrigin(ctx)
    const { permissions } = await authenticate(ctx, backend)
    const selected = selectedTools(ctx)
    requireUtf8(ctx)
    const listen = await (listener ??= openMcpListener(backend))
    views.set(ctx.req, { permissions, selected })
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  })
  for (const path of metadataPaths) {
    router.get(path, ctx => void (ctx.body = describeProtectedResource(ctx)))
  }
  router.post('/register', ctx => {
    ctx.status = 404
    ctx.body = refusedRegistration
  })
}

/** What the client of a request may see. */
const views = new WeakMap<object, McpView>()

async function authenticate(ctx: Context, backend: ApiBackend): Promise<Caller> {
  try {
    return await authenticateCaller(ctx, backend)
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'unauthenticated') {
      ctx.set('WWW-Authenticate', bearerChallenge(ctx))
    }
    throw error
  }
}

/**
 * The tools that `/mcp?tools=search,store` names; undefined where it names none.
 *
 * @throws Refusal `invalid` for an unknown tool or another parameter
 */
function selectedTools(ctx: Context): string[] | undefined {
  const { tools, ...others } = ctx.query
  const nearMiss = Object.keys(others).find(name => suggestName(name, ['tools']))
  if (nearMiss !== undefined) {
    throw new Refusal(
      'invalid',
      `unknown query parameter ${nearMiss.slice(0, 64)}`,
      'did you mean tools?',
    )
  }
  if (tools === undefined) return undefined
  const names = [tools].flat().join(',').split(',').filter(Boolean)
  const unknown = names.find(name => !toolNames.includes(name))
  if (unknown === undefined && names.length > 0) return names
  throw new Refusal(
    'invalid',
    unknown === undefined ? 'tools names no tool' : `there is no tool ${unknown.slice(0, 64)}`,
    `tools: ${toolNames.join(', ')}`,
  )
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
    ({ authInfo }) => {
      const { target, view } = authInfo!.extra as RequestContext
      return vaultServer(createToolCaller(...target), view)
    },
    {
      // Parsed by the SDK at once, and not counted before: nested lists take a hundred times their bytes.
      maxRequestBodySize: 512 * 1024,
      onerror: error => log.warn({ err: error }, 'mcp.failed'),
    },
  )
  return getRequestListener(
    (request, { incoming }) =>
      handler.fetch(request, {
        authInfo: {
          token: '',
          clientId: '',
          scopes: [],
          extra: { target: loopbackTarget(incoming), view: views.get(incoming)! },
        },
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

type RequestContext = { target: LoopbackTarget; view: McpView }

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
