import Koa, { type Context, type Middleware } from 'koa'
import { hideOrgPaths } from '#api/edge/auth.ts'
import { handleErrors, sendError, sendNoSuchEndpoint } from '#api/edge/errors.ts'
import { RateLimiter, type Quotas } from '#api/edge/rate-limit.ts'
import { dispatchRoutes } from '#api/edge/static-routes.ts'
import { checkIdempotencyKey } from '#api/edge/request-idempotency.ts'
import { createRouter } from '#api/routes/index.ts'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { countRecentRequest, requestSeconds } from '#shared/core/metrics.ts'
import { withRequestSpan } from '#shared/core/trace.ts'

/**
 * The API as a Koa application: log, errors, rate limits, routes.
 *
 * @param quotas rate limits in place of the usual ones
 */
export function createApp(backend: Backend, quotas?: Quotas): Koa {
  const app = new Koa()
  const rateLimiter = new RateLimiter(backend, quotas)
  const router = createRouter(backend, rateLimiter)
  app.silent = true
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (!clientDisconnectCodes.has(error.code ?? ''))
      backend.log.error({ err: error }, 'response.failed')
  })
  app.use(logRequests(backend.log))
  app.use(handleErrors(backend.log))
  app.use(rateLimiter.middleware)
  app.use(checkIdempotencyKey)
  app.use(dispatchRoutes(router))
  app.use(hideOrgPaths({ ...backend, rateLimiter }))
  app.use(rejectUnsupportedMethods(router.stack))
  return app
}

/** Codes of a client that closed its connection: not logged as errors. */
const clientDisconnectCodes = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
])

/** One line per request, by route pattern: never a path, which may hold a key. */
function logRequests(log: Log): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now()
    ctx.state.requestId = mintId()
    const { res } = ctx
    res.setHeader('X-Request-Id', ctx.state.requestId as string)
    res.setHeader('X-Content-Type-Options', 'nosniff')
    // Memories and keys must not be cached; responses that may be set their own header.
    res.setHeader('Cache-Control', 'no-store')
    await withRequestSpan(ctx.headers, { 'http.request.method': ctx.method }, async span => {
      await next()
      const pattern = routePattern(ctx)
      if (pattern !== null) span.updateName(`${ctx.method} ${pattern}`)
      span.setAttributes({
        'http.response.status_code': ctx.status,
        ...(pattern !== null && { 'http.route': pattern }),
        ...(span.isRecording() && memoryAttributes(ctx)),
      })
      // Within the span, so that an exported line names its trace.
      countAnswer(log, ctx, pattern, performance.now() - startedAt)
    })
  }
}

function countAnswer(log: Log, ctx: Context, route: string | null, elapsed: number): void {
  requestSeconds.observe(
    { method: ctx.method, route: route ?? 'none', status: ctx.status },
    elapsed / 1_000,
  )
  if (route?.startsWith('/v1/')) countRecentRequest(elapsed / 1_000)
  if (!log.isLevelEnabled('info')) return
  const ms = Math.round(elapsed * 10) / 10
  log.info(
    { request: ctx.state.requestId, method: ctx.method, route, status: ctx.status, ms },
    'request.answered',
  )
}

/** Headers of an answer that are attributes of its span: words and numbers, never texts of users. */
const spanHeaders = { 'X-Memory-Status': 'memory.status', 'X-Memory-Left-Out': 'memory.left_out' }

const memoryAttributes = ({ response }: Koa.Context): Record<string, string> =>
  Object.fromEntries(
    Object.entries(spanHeaders).flatMap(([header, attribute]) => {
      const value = response.get(header)
      return value === '' ? [] : [[attribute, value]]
    }),
  )

/** The pattern a request was routed by: never its path, which may hold a key. */
const routePattern = (ctx: Context): string | null =>
  (ctx as { _matchedRoute?: string | RegExp })._matchedRoute?.toString() ?? null

/**
 * Answers 405 with `Allow` for a known path with another method, 426 to a WebSocket, and 404 with the right path to a client
 * whose base URL is not right.
 */
function rejectUnsupportedMethods(
  layers: { methods: string[]; match(path: string): boolean }[],
): Middleware {
  return async (ctx, next) => {
    const allowed = layers.filter(layer => layer.match(ctx.path)).flatMap(layer => layer.methods)
    if (allowed.length === 0) {
      const meant = `/v1/${ctx.path.replace(/^\/*(?:v1\/+)*/, '')}`
      if (!layers.some(layer => layer.match(meant))) return next()
      return sendNoSuchEndpoint(
        ctx,
        `The base URL has its /v1 missing or twice: ${meant} is served. `,
      )
    }
    if (allowed.includes(ctx.method)) return next()
    // Clients of the Responses API read this status as a wish for plain HTTP.
    if (ctx.get('upgrade').toLowerCase() === 'websocket') {
      return sendError(ctx, 426, {
        reason: 'invalid',
        error: 'WebSocket is not served here',
        hint: 'Send a POST to the same path over HTTP; with "stream": true the answer is a stream of events',
      })
    }
    ctx.set('Allow', [...new Set(allowed)].join(', '))
    sendError(ctx, 405, {
      reason: 'invalid',
      error: `${ctx.method} is not served here`,
      hint: `This path takes ${[...new Set(allowed)].filter(method => method !== 'HEAD').join(', ')}`,
    })
  }
}
