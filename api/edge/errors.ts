import type { Context, Middleware } from 'koa'
import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { bodyTooLarge, invalidJson } from '#api/edge/body.ts'
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

/** The body of every 4xx and 5xx. */
type ErrorBody = { error: string; hint?: string }

/** Seconds after which to try again. */
const retryAfterSeconds = { unavailable: '2', limited: '10' }

/**
 * The one place where an error becomes a status: that of a Refusal by its reason, failures to read a body
 * by their code, anything else a 500 without details.
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
  // Pages that a browser opens have set a challenge for a password.
  if (reason === 'unauthenticated' && !ctx.response.get('WWW-Authenticate')) {
    ctx.set('WWW-Authenticate', 'Bearer')
  }
  const body: ErrorBody = { error: maskKeys(message), ...(hint && { hint: maskKeys(hint) }) }
  ctx.body = body
}

/** A path or method that no route serves. */
function sendNoSuchEndpoint(ctx: Context): void {
  const body: ErrorBody = {
    error: maskKeys(`No such endpoint: ${ctx.method} ${ctx.path.slice(0, 64)}`),
    hint: 'GET / lists the endpoints of this service',
  }
  ctx.status = 404
  ctx.body = body
}

const disconnectCodes = new Set(['ECONNRESET', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Failures to read a body, by koa-body's status or the stream's code. */
function refusalForBodyError(error: unknown, { req }: Context): Refusal | undefined {
  const { status, code = '' } = error as { status?: number; code?: string }
  if (status === 413) return bodyTooLarge()
  if (code.startsWith('Z_') || code === 'ERR_BUFFER_TOO_LARGE') {
    return new Refusal(
      'invalid',
      'The body is not what Content-Encoding says',
      'Send it gzip-compressed, or plain without Content-Encoding',
    )
  }
  // From a complete request these codes are about a connection to another service.
  if (!req.complete && disconnectCodes.has(code)) {
    return new Refusal('invalid', 'The body ended early')
  }
  if (status === 400) return invalidJson()
  return undefined
}
