import Koa, { type Context, type Middleware } from 'koa'
import { hideOrgPaths } from '#api/edge/admin-auth.ts'
import { handleErrors } from '#api/edge/errors.ts'
import { RateLimiter, type Quotas } from '#api/edge/rate-limit.ts'
import { checkIdempotencyKey } from '#api/edge/request-idempotency.ts'
import { createRouter } from '#api/routes/index.ts'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { requestSeconds } from '#shared/core/metrics.ts'
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
  app.use(router.routes())
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
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')
    // Memories and keys must not be cached; responses that may be set their own header.
    ctx.set('Cache-Control', 'no-store')
    await withRequestSpan(ctx.headers, { 'http.request.method': ctx.method }, async span => {
      await next()
      const pattern = routePattern(ctx)
      if (pattern !== null) span.updateName(`${ctx.method} ${pattern}`)
      span.setAttributes({
        'http.response.status_code': ctx.status,
        ...(pattern !== null && { 'http.route': pattern }),
      })
    })
    const elapsed = performance.now() - startedAt
    const route = routePattern(ctx)
    requestSeconds.observe(
      { method: ctx.method, route: route ?? 'none', status: ctx.status },
      elapsed / 1_000,
    )
    if (!log.isLevelEnabled('info')) return
    const ms = Math.round(elapsed * 10) / 10
    log.info(
      { request: ctx.state.requestId, method: ctx.method, route, status: ctx.status, ms },
      'request.answered',
    )
  }
}

/** The pattern a request was routed by: never its path, which may hold a key. */
const routePattern = (ctx: Context): string | null =>
  (ctx as { _matchedRoute?: string | RegExp })._matchedRoute?.toString() ?? null

/** Answers 405 with `Allow` for a known path with another method. */
function rejectUnsupportedMethods(
  layers: { methods: string[]; match(path: string): boolean }[],
): Middleware {
  return async (ctx, next) => {
    const allowed = layers.filter(layer => layer.match(ctx.path)).flatMap(layer => layer.methods)
    if (allowed.length === 0 || allowed.includes(ctx.method)) return next()
    ctx.status = 405
    ctx.set('Allow', [...new Set(allowed)].join(', '))
    ctx.body = {
      error: `${ctx.method} is not served here`,
      hint: `This path takes ${[...new Set(allowed)].filter(method => method !== 'HEAD').join(', ')}`,
    }
  }
}
