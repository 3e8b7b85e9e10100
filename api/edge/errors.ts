import type { Context, Middleware } from 'koa'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { maskKeys } from '#shared/access/key.ts'
import type { Log } from '#shared/core/log.ts'

const statusByReason: Record<RefusalReason, number> = {
  invalid: 400,
  unauthenticated: 401,
  unpaid: 402,
  forbidden: 403,
  missing: 404,
  conflict: 409,
  'too-large': 413,
  unsupported: 415,
  limited: 429,
  upstream: 502,
  unavailable: 503,
}

/** What every client error and every failure answers with. */
type ErrorBody = { error: string; hint?: string }

/** Seconds after which another try is worth it: where a store was away, and where too much is asked. */
const retryAfterSeconds = { unavailable: '2', limited: '10' }

/**
 * The one place an error becomes a status: a Refusal speaks for itself, what the body parser and Koa
 * say is put into our words, anything else is a 500 that says nothing.
 */
export function handleErrors(log: Log): Middleware {
  return async (ctx, next) => {
    try {
      await next()
      if (ctx.status === 404 && ctx.body === undefined) sendNoSuchEndpoint(ctx)
    } catch (error) {
      const refusal = error instanceof Refusal ? error : (refusalForBodyError(error, ctx) ?? null)
      if (refusal) return sendRefusal(ctx, refusal)
      log.error({ err: error, request: ctx.state.requestId }, 'request.failed')
      ctx.status = 500
      ctx.body = { error: 'Internal error' } satisfies ErrorBody
    }
  }
}

function sendRefusal(ctx: Context, { reason, message, hint }: Refusal): void {
  ctx.status = statusByReason[reason]
  if ((reason === 'unavailable' || reason === 'limited') && !ctx.response.get('Retry-After')) {
    ctx.set('Retry-After', retryAfterSeconds[reason])
  }
  // Pages that a browser opens ask for a password instead.
  if (reason === 'unauthenticated' && !ctx.response.get('WWW-Authenticate')) {
    ctx.set('WWW-Authenticate', 'Bearer')
  }
  const body: ErrorBody = { error: maskKeys(message), ...(hint && { hint: maskKeys(hint) }) }
  ctx.body = body
}

/** A path or method nobody serves. Koa has set 404, or the router 405 or 501 with `Allow`. */
function sendNoSuchEndpoint(ctx: Context): void {
  const body: ErrorBody = {
    error: maskKeys(`No such endpoint: ${ctx.method} ${ctx.path.slice(0, 64)}`),
    hint: 'GET / lists the endpoints of this service',
  }
  ctx.status = 404
  ctx.body = body
}

const disconnectCodes = new Set(['ECONNRESET', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Failures to read a body, by the status or the code of whoever noticed. */
function refusalForBodyError(error: unknown, { req }: Context): Refusal | undefined {
  const { status, code = '' } = error as { status?: number; code?: string }
  if (status === 413) {
    return new Refusal(
      'too-large',
      'The body is larger than this endpoint takes',
      'JSON may have 2 MiB; that of prepare, ingest and model calls 20 MiB',
    )
  }
  if (code.startsWith('Z_') || code === 'ERR_BUFFER_TOO_LARGE') {
    return new Refusal(
      'invalid',
      'The body is not what Content-Encoding says',
      'Send it gzip-compressed, or plain without Content-Encoding',
    )
  }
  // The same codes from a request that is whole are about a connection of our own.
  if (!req.complete && disconnectCodes.has(code)) {
    return new Refusal('invalid', 'The body ended early')
  }
  if (status === 400) {
    return new Refusal('invalid', 'The body is not valid JSON', 'Check quotes, commas and encoding')
  }
  return undefined
}
