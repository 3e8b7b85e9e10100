import type { Context, Middleware } from 'koa'
import { bodyEndedEarly } from '#api/edge/body-stream.ts'
import { FileRefusal, Refusal, type RefusalReason } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { errorFamilyOf, presentError, type ErrorReason } from '#api/contract/provider-error.ts'
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

export const statusOfRefusal = ({ reason }: Refusal): number => statusByReason[reason]

/** The media type of SCIM: RFC 7644, section 3.1. */
export const scimMediaType = 'application/scim+json'

/** A refusal by a rule of SCIM, under its name in RFC 7644, table 9. */
export class ScimRefusal extends Refusal {
  readonly scimType: string

  constructor(scimType: string, message: string, hint?: string) {
    super('invalid', message, hint)
    this.scimType = scimType
  }
}

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
      const refused = error instanceof Refusal ? error : (refusalForBodyError(error, ctx) ?? null)
      if (refused) {
        // The client reads that a store is out of reach; why is for the operator.
        if (refused.reason === 'unavailable' && refused.cause !== undefined) {
          log.warn({ err: refused, request: ctx.state.requestId }, 'request.unavailable')
        }
        return sendRefusal(ctx, refused)
      }
      log.error({ err: error, request: ctx.state.requestId }, 'request.failed')
      sendError(ctx, 500, { reason: 'internal', error: 'Internal error' })
    }
  }
}

function sendRefusal(ctx: Context, refusal: Refusal): void {
  const { reason, message, hint } = refusal
  const status = statusOfRefusal(refusal)
  if ((reason === 'unavailable' || reason === 'limited') && !ctx.response.get('Retry-After')) {
    ctx.set('Retry-After', retryAfterSeconds[reason])
  }
  // Pages that a browser opens have set a challenge for a password.
  if (reason === 'unauthenticated' && !ctx.response.get('WWW-Authenticate')) {
    ctx.set('WWW-Authenticate', 'Bearer')
  }
  sendError(ctx, status, { reason, error: message, hint })
  if (refusal instanceof FileRefusal) Object.assign(ctx.body as object, { errors: refusal.errors })
  if (refusal instanceof ScimRefusal)
    Object.assign(ctx.body as object, { scimType: refusal.scimType })
}

/** Answers with an error: `{error, hint?}`, on paths of providers in their shape. Keys in it are masked. */
export function sendError(
  ctx: Context,
  status: number,
  { reason, error, hint }: { reason: ErrorReason; error: string; hint?: string | undefined },
): void {
  ctx.status = status
  const family = errorFamilyOf(ctx.path, ctx.get('anthropic-version'))
  ctx.body = presentError(family, {
    status,
    reason,
    error: maskKeys(error),
    hint: hint && maskKeys(hint),
    requestId: ctx.state.requestId as string,
  })
  if (family === 'scim') ctx.type = scimMediaType
}

/** A path or method that no route serves. */
export function sendNoSuchEndpoint(ctx: Context, hint = ''): void {
  sendError(ctx, 404, {
    reason: 'missing',
    error: `No such endpoint: ${ctx.method} ${ctx.path.slice(0, 64)}`,
    hint: `${hint}GET / lists the endpoints of this service`,
  })
}

const disconnectCodes = new Set(['ECONNRESET', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Failures to read a body, by the code of its stream. Any value may have been thrown. */
function refusalForBodyError(error: unknown, { req }: Context): Refusal | undefined {
  const { code } = Object(error) as { code?: unknown }
  if (typeof code !== 'string') return undefined
  if (code.startsWith('Z_') || code === 'ERR_BUFFER_TOO_LARGE') {
    return refusal('invalid', 'wrongEncoding')
  }
  // From a complete request these codes are about a connection to another service, unless the error is its own.
  if ((!req.complete || req.errored === error) && disconnectCodes.has(code)) {
    return bodyEndedEarly()
  }
  return undefined
}
