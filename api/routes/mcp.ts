import { refusal } from '#shared/core/refusal.ts'
import type { IncomingMessage } from 'node:http'
import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { McpRequestContext } from '@modelcontextprotocol/server'
import { readJson } from '#api/edge/body.ts'
import {
  bearerChallenge,
  describeProtectedResource,
  metadataPaths,
  refusedRegistration,
} from '#api/mcp/protected-resource.ts'
import { openAccessToken } from '#api/oauth/open-application.ts'
import type { McpView } from '#api/mcp/server.ts'
import { readCalls } from '#api/mcp/read-arguments.ts'
import { createToolCaller } from '#api/mcp/tool-caller.ts'
import { scopesOf, toolNames, tools, type Tool, type ToolRights } from '#api/mcp/tools.ts'
import {
  authenticateCaller,
  parseBearer,
  requireOneAuthorization,
  userHeaderName,
} from '#api/edge/memory-key-auth.ts'
import { sealTicket, ticketHeader } from '#api/edge/ticket.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { isOwnOrigin } from '#api/edge/forms.ts'
import { applicationScopes } from '#shared/access/applications.postgres.ts'
import { looksLikeKey } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { suggestName } from '#shared/core/describe-input.ts'

/** Headers of an MCP request that its tool calls carry on: the credential, the user and the trace. */
const forwardedHeaders = [
  'authorization',
  'x-api-key',
  'x-memory-key',
  'x-memory-user',
  'x-memory-user-from',
  ticketHeader,
  'traceparent',
]

/**
 * The vault as tools, over MCP's streamable HTTP: stateless, so any process answers any request. Keys,
 * suffixes, limits and bills are those of the endpoints that the tools call.
 */
export function mcp(router: Router, backend: ApiBackend): void {
  let listener: ReturnType<typeof openMcpListener> | undefined
  router.all('/mcp', async ctx => {
    rejectForeignOrigin(ctx, backend.config)
    const rights = await authenticate(ctx, backend)
    const selected = selectedTools(ctx)
    const body = ctx.method === 'POST' ? await readJson(ctx, 'small') : undefined
    readCalls(body)
    requireScopes(ctx, backend, { body, rights })
    const listen = await (listener ??= openMcpListener(backend))
    const takesStream = ctx.accepts().some(type => /^text\/event-stream$/i.test(type))
    contexts.set(ctx.req, { view: { ...rights, selected }, body, takesStream })
    ctx.respond = false
    await listen(ctx.req, ctx.res)
  })
  const { publicUrl } = backend.config
  for (const path of metadataPaths) {
    router.get(path, ctx => {
      // Clients that run in a browser read it, too; it holds nothing about anyone.
      ctx.set('Access-Control-Allow-Origin', '*')
      ctx.body = describeProtectedResource(ctx, publicUrl)
    })
  }
  if (publicUrl !== null) return
  router.post('/register', ctx => {
    ctx.status = 404
    ctx.body = refusedRegistration
  })
}

const contexts = new WeakMap<
  object,
  {
    view: McpView
    body: unknown
    /** Whether `Accept` names the type of a stream; everyone else gets JSON, also who accepts neither. */
    takesStream: boolean
  }
>()

/** What the key or the access token of a request permits. */
async function authenticate(ctx: Context, backend: ApiBackend): Promise<ToolRights> {
  const { publicUrl } = backend.config
  const token = publicUrl === null ? undefined : accessTokenOf(ctx)
  try {
    if (publicUrl === null || token === undefined) return await authenticateCaller(ctx, backend)
    const { vault, scopes, ...ticket } = await openAccessToken(ctx, backend, { token, publicUrl })
    // From here on the request acts by the key of its grant, and so do the requests of its tools.
    delete ctx.req.headers.authorization
    ctx.req.headers[ticketHeader] = sealTicket(backend.seal, ticket, backend.now())
    const { permissions, scope } = await authenticateCaller(ctx, backend)
    if (scope.vault !== vault) throw refusal('unauthenticated', 'accessTokenEnded')
    return { permissions, scopes }
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'unauthenticated') {
      const challenge = token === undefined ? {} : { error: 'invalid_token' }
      ctx.set('WWW-Authenticate', bearerChallenge(ctx, publicUrl, challenge))
    }
    throw error
  }
}

/** A bearer token that is no Memory Key, of a request that carries no Memory Key elsewhere. */
function accessTokenOf(ctx: Context): string | undefined {
  requireOneAuthorization(ctx)
  const bearer = parseBearer(ctx.get('authorization'))
  const isKeyed = [bearer, ctx.get('x-memory-key').trim(), ctx.get('x-api-key').trim()].some(
    value => value !== undefined && looksLikeKey(value),
  )
  return isKeyed ? undefined : bearer
}

/**
 * Refuses calls of tools beyond the scopes of a login, as RFC 6750 has it, so that the client may ask the person for
 * more.
 *
 * @throws Refusal `forbidden`.
 */
function requireScopes(
  ctx: Context,
  { config: { publicUrl } }: ApiBackend,
  { body, rights: { scopes } }: { body: unknown; rights: ToolRights },
): void {
  if (scopes === undefined) return
  const needed = calledTools(body).flatMap(scopesOf)
  if (needed.every(scope => scopes.includes(scope))) return
  const asked = applicationScopes.filter(scope => [...scopes, ...needed].includes(scope))
  const challenge = { error: 'insufficient_scope', scopes: asked }
  ctx.set('WWW-Authenticate', bearerChallenge(ctx, publicUrl, challenge))
  throw new Refusal(
    'forbidden',
    `This login may ${scopes.join(', ')}, and the tool needs ${needed.join(', ')}`,
    'Connect the application again and allow more',
  )
}

/** The tools that a body calls. */
function calledTools(body: unknown): Tool[] {
  const messages = (Array.isArray(body) ? body : [body]) as unknown[]
  const names = new Set(
    messages.map(message => {
      const { method, params } = Object(message) as { method?: unknown; params?: unknown }
      return method === 'tools/call' ? (Object(params) as { name?: unknown }).name : undefined
    }),
  )
  return tools.filter(({ name }) => names.has(name))
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
  const [{ getRequestListener }, sdk, { createMcpServer: vaultServer }] = await Promise.all([
    import('@hono/node-server'),
    import('@modelcontextprotocol/server'),
    import('#api/mcp/server.ts'),
  ])
  const openServer = ({ authInfo }: McpRequestContext) => {
    const { target, view } = authInfo!.extra as { target: LoopbackTarget; view: McpView }
    return vaultServer(createToolCaller(...target), view)
  }
  const handler = sdk.createMcpHandler(openServer, {
    onerror: error => log.warn({ err: error }, 'mcp.failed'),
  })
  /** Protocol versions before 2026-07-28 answer in a stream only, unless a transport is opened for JSON. */
  const answerInJson: typeof handler.fetch = async (request, options) => {
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    const server = openServer({ era: 'legacy', ...options })
    await server.connect(transport)
    try {
      return await transport.handleRequest(request, options)
    } finally {
      await server.close()
    }
  }
  return getRequestListener(
    async (given, { incoming }) => {
      const { view, body, takesStream } = contexts.get(incoming)!
      const extra = { target: loopbackTarget(incoming), view }
      const authInfo = { token: '', clientId: '', scopes: [], extra }
      if (body === undefined) return handler.fetch(given, { authInfo })
      const request = toSdkRequest(given)
      const isJson = !takesStream && (await sdk.isLegacyRequest(request, body))
      return (isJson ? answerInJson : handler.fetch)(request, { authInfo, parsedBody: body })
    },
    { overrideGlobalObjects: false },
  )
}

/** A request whose body was read. The SDK compares texts of headers; what it asks for is decided here. */
function toSdkRequest({ url, method, headers: given, signal }: Request): Request {
  const headers = new Headers(given)
  headers.set('accept', 'application/json, text/event-stream')
  headers.set('content-type', 'application/json')
  return new Request(url, { method, headers, signal })
}

/** A page of another site must not use a key that a browser stores. */
function rejectForeignOrigin(ctx: Context, { publicUrl }: ApiBackend['config']): void {
  const origin = ctx.get('origin')
  if (origin === '' || isOwnOrigin(ctx, origin, publicUrl)) return
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
  const names = [...forwardedHeaders, userHeaderName(headers)].filter(name => name !== undefined)
  const forwarded = names.flatMap(name => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return [`http://${host}:${localPort}`, Object.fromEntries(forwarded)]
}
