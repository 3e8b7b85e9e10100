import type { Context, Middleware } from 'koa'
import { koaBody } from 'koa-body'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

const mebibyte = 1024 * 1024

/** How large a JSON body may be, unpacked: ours are small; exchanges and provider calls carry media. */
export const bodyLimits = { small: 2 * mebibyte, large: 20 * mebibyte } as const

const contentEncodings = new Set(['identity', 'gzip', 'deflate'])

const bodyParsers = {
  small: createBodyParser(bodyLimits.small),
  large: createBodyParser(bodyLimits.large),
}

/**
 * Reads a JSON body into `ctx.request.body`: limited, well-formed, of bounded depth.
 *
 * @throws Refusal `unsupported` for a content type or encoding we do not read; `too-large`; `invalid`
 *   for broken compression, broken JSON, or nesting deeper than 64 levels.
 */
export async function readJson(ctx: Context, size: keyof typeof bodyLimits): Promise<unknown> {
  const encoding = (ctx.get('content-encoding') || 'identity').trim().toLowerCase()
  if (!contentEncodings.has(encoding)) {
    throw new Refusal(
      'unsupported',
      'This Content-Encoding is not supported',
      'Send the body plain, or with gzip',
    )
  }
  if (ctx.request.length === 0 || !hasBody(ctx)) return {}
  if (size === 'large') allowSlowBody(ctx.req)
  if (!ctx.is('json', '+json')) {
    throw new Refusal(
      'unsupported',
      'This Content-Type is not supported',
      'Send JSON with Content-Type: application/json',
    )
  }
  requireUtf8(ctx)
  // The parser below compares with lower-case names, and knows few kinds of JSON.
  if (ctx.req.headers['content-encoding']) ctx.req.headers['content-encoding'] = encoding
  ctx.req.headers['content-type'] = 'application/json'
  try {
    await bodyParsers[size](ctx, async () => {})
  } catch (error) {
    // The parser leaves what it did not read standing in the connection: the next request on it would
    // wait behind these bytes until the timeout.
    ctx.req.unpipe()
    ctx.req.resume()
    throw error
  }
  return sanitizeJson((ctx.request as { body?: unknown }).body)
}

/** ASCII is a part of UTF-8. */
const charsets = new Set(['', 'utf-8', 'utf8', 'us-ascii', 'ascii'])

/**
 * Refuses a body that says it is not UTF-8: read as UTF-8 it would be stored with holes.
 *
 * @throws Refusal `unsupported`.
 */
export function requireUtf8(ctx: Context): void {
  if (charsets.has(ctx.request.charset.trim().toLowerCase())) return
  throw new Refusal(
    'unsupported',
    'This charset is not supported',
    'Send the body in UTF-8, with Content-Type: application/json; charset=utf-8',
  )
}

const hasBody = (ctx: Context): boolean =>
  ctx.req.headers['transfer-encoding'] !== undefined || (ctx.request.length ?? 0) > 0

function createBodyParser(limit: number): Middleware {
  return koaBody({
    json: true,
    jsonLimit: limit,
    jsonStrict: false,
    text: false,
    urlencoded: false,
    multipart: false,
    patchNode: false,
    parsedMethods: ['POST', 'PUT', 'PATCH', 'DELETE'] as never,
  })
}
