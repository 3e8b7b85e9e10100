import type { Context, Middleware } from 'koa'
import { koaBody } from 'koa-body'
import { streamBody, type ContentEncoding } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

const mebibyte = 1024 * 1024

/** Bytes of a JSON body, decompressed: exchanges and provider calls carry media. */
export const bodyLimits = { small: 2 * mebibyte, large: 20 * mebibyte } as const

/**
 * Reads a JSON body; no body is an empty object.
 *
 * @throws Refusal `unsupported` for another content type, charset or encoding; `too-large`; `invalid`
 *   for broken compression, broken JSON, or nesting deeper than 64 levels.
 */
export async function readJson(ctx: Context, size: keyof typeof bodyLimits): Promise<unknown> {
  const encoding = requireJsonEncoding(ctx)
  if (ctx.request.length === 0 || !hasBody(ctx)) return {}
  requireMediaType(ctx, ['json', '+json'], jsonHint)
  requireUtf8(ctx)
  if (size === 'large') allowSlowBody(ctx.req)
  // koa-body compares codings in lower case and knows few media types of JSON.
  if (ctx.req.headers['content-encoding']) ctx.req.headers['content-encoding'] = encoding
  ctx.req.headers['content-type'] = 'application/json'
  try {
    await parsers[size](ctx, async () => {})
  } catch (error) {
    // Unread bytes would hold up the next request on this connection until the timeout.
    ctx.req.unpipe()
    ctx.req.resume()
    throw error
  }
  return sanitizeJson((ctx.request as { body?: unknown }).body)
}

const parsers = {
  small: createJsonParser(bodyLimits.small),
  large: createJsonParser(bodyLimits.large),
}

function createJsonParser(limit: number): Middleware {
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

/**
 * The bytes of a JSON body, decompressed; their content type may be missing.
 *
 * @throws Refusal `unsupported` for another content type, charset or encoding; `too-large` beyond 20 MiB.
 */
export async function readJsonBytes(ctx: Context): Promise<Buffer> {
  const encoding = requireJsonEncoding(ctx)
  if (ctx.get('content-type') !== '') requireMediaType(ctx, ['json', '+json'], jsonHint)
  requireUtf8(ctx)
  allowSlowBody(ctx.req)
  return readBytes(ctx, encoding, bodyLimits.large)
}

const jsonHint = 'Send JSON with Content-Type: application/json'

const requireJsonEncoding = (ctx: Context): ContentEncoding =>
  requireEncoding(ctx, ['identity', 'gzip', 'deflate'], 'Send the body plain, or with gzip')

/** @throws Refusal `unsupported` with this hint. */
export function requireEncoding<Accepted extends ContentEncoding>(
  ctx: Context,
  accepted: readonly Accepted[],
  hint: string,
): Accepted {
  const encoding = (ctx.get('content-encoding') || 'identity').trim().toLowerCase()
  const found = accepted.find(name => name === encoding)
  if (found) return found
  throw new Refusal('unsupported', 'This Content-Encoding is not supported', hint)
}

/** @throws Refusal `unsupported` with this hint. */
export function requireMediaType(ctx: Context, accepted: string[], hint: string): void {
  if (!ctx.is(accepted))
    throw new Refusal('unsupported', 'This Content-Type is not supported', hint)
}

/** Names of UTF-8, and of ASCII, which is a subset of it. */
const charsets = new Set(['', 'utf-8', 'utf8', 'us-ascii', 'ascii'])

/**
 * Refuses a body in another charset: read as UTF-8 it would lose characters.
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

export const invalidJson = (): Refusal =>
  new Refusal('invalid', 'The body is not valid JSON', 'Check quotes, commas and encoding')

async function readBytes(
  ctx: Context,
  encoding: ContentEncoding,
  bytesMax: number,
): Promise<Buffer> {
  if (encoding === 'identity' && (ctx.request.length ?? 0) > bytesMax) {
    ctx.req.resume()
    throw bodyTooLarge()
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of streamBody(ctx, encoding)) {
    bytes += chunk.length
    if (bytes > bytesMax) throw bodyTooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

export const bodyTooLarge = (): Refusal =>
  new Refusal(
    'too-large',
    'The body is larger than this endpoint takes',
    'JSON may have 2 MiB; that of prepare, ingest and model calls 20 MiB',
  )

const hasBody = (ctx: Context): boolean =>
  ctx.req.headers['transfer-encoding'] !== undefined || (ctx.request.length ?? 0) > 0
