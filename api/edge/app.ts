import Koa, { type Context, type Middleware } from 'koa'
import { adminsOnly } from '#api/edge/admin-auth.ts'
import { handleErrors } from '#api/edge/errors.ts'
import { idempotency } from '#api/edge/idempotency.ts'
import { rateLimit, type Quotas } from '#api/edge/rate-limit.ts'
import { createRouter } from '#api/routes/index.ts'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Log } from '#shared/core/log.ts'
import { requestSeconds } from '#shared/core/metrics.ts'
import { withRequestSpan } from '#shared/core/trace.ts'

/**
 * The whole API as a Koa application: log, errors, limits, admins, routes.
 *
 * @param quotas rate limits in place of the usual ones
 */
export function createApp(backend: Backend, quotas?: Quotas): Koa {
  const app = new Koa()
  const router = createRouter(backend)
  app.silent = true
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (!clientDisconnectCodes.has(error.code ?? ''))
      backend.log.error({ err: error }, 'response.failed')
  })
  app.use(logRequests(backend.log))
  app.use(handleErrors(backend.log))
  app.use(rateLimit(backend, quotas))
  app.use(adminsOnly(backend))
  app.use(idempotency(backend))
  app.use(router.routes())
  app.use(rejectUnsupportedMethods(router.stack))
  return app
}

/** A client that hangs up is nobody's fault. */
const clientDisconnectCodes = new Set([
  'ERR_STREAM_PREMATURE_CLOSE',
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
])

/** One line per request, by route pattern: never a path, which may hold a key. */
function logRequests(log: Log): Middleware {
  return async (ctx, next) => {
    const begun = performance.now()
    ctx.state.requestId = mintId()
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')
    // Memories and keys are nothing for caches on the way; what may be kept says so itself.
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
    const elapsed = performance.now() - begun
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

/** A known path with another method: 405 and what it does take. */
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
