import type { Context, Middleware } from 'koa'
import { koaBody } from 'koa-body'
import {
  BodyBytes,
  bodyEndedEarly,
  collectBody,
  streamBody,
  type ContentEncoding,
} from '#api/edge/body-stream.ts'
import { admitBody, bodyShareOf } from '#api/edge/body-budget.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { createJsonCounter, modelCallBounds, parsedBodyBounds } from '#shared/core/json-bounds.ts'
import { parseJson, requireUtf8Bytes } from '#api/edge/parse-json.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { unsupportedContentType } from '#shared/core/refusals.ts'

const mebibyte = 1024 * 1024

/** Bytes of a JSON body, decompressed: exchanges and provider calls carry media. */
export const bodyLimits = { small: 2 * mebibyte, large: 20 * mebibyte } as const

/**
 * Reads a JSON body, whatever its content type; no body is an empty object. Values are counted before they are
 * parsed. A large body waits until the bodies that are parsed leave room for it.
 *
 * @throws Refusal `unsupported` for a multipart form, another charset or encoding; `too-large`; `invalid`
 *   for broken compression, bytes that are not UTF-8, broken JSON, too many values, or nesting deeper than 64
 *   levels; `unavailable` when too many large bodies wait.
 */
export async function readJson(ctx: Context, size: keyof typeof bodyLimits): Promise<unknown> {
  const encoding = requireJsonEncoding(ctx)
  if (ctx.request.length === 0 || !hasBody(ctx)) return {}
  rejectMultipart(ctx, jsonHint)
  requireUtf8(ctx)
  const count = createJsonCounter(parsedBodyBounds)
  const isPlain = encoding === 'identity' && (ctx.request.length ?? Infinity) <= plainBytesMax
  if (size === 'small' && isPlain) {
    const bytes = await readPlainBytes(ctx)
    count(bytes)
    return parseJson(bytes)
  }
  if (size === 'large') allowSlowBody(ctx.req)
  const bytes = await readBytes(ctx, encoding, bodyLimits[size], count)
  await admitBody(ctx, bytes.length)
  return parseJson(bytes)
}

/** Bodies of up to so many bytes are read by koa-body; what has arrived of longer ones is counted meanwhile. */
const plainBytesMax = 64 * 1024

/** With koa-body, as a text whose characters are the bytes: UTF-8 is checked when they are parsed. */
async function readPlainBytes(ctx: Context): Promise<Buffer> {
  // koa-body knows few media types of JSON.
  ctx.req.headers['content-type'] = 'application/json'
  try {
    await plainBodyReader(ctx, async () => {})
  } catch (error) {
    // The reader's own error would be one of the service.
    if (ctx.req.destroyed && !ctx.req.readableEnded) throw bodyEndedEarly()
    throw error
  }
  return Buffer.from((ctx.request as { body?: string }).body ?? '', 'latin1')
}

const plainBodyReader: Middleware = koaBody({
  text: true,
  textTypes: ['application/json'],
  textLimit: plainBytesMax,
  encoding: 'binary',
  json: false,
  urlencoded: false,
  multipart: false,
  patchNode: false,
  parsedMethods: ['POST', 'PUT', 'PATCH', 'DELETE'] as never,
})

/**
 * The bytes of a JSON body, decompressed, whatever its content type.
 *
 * @throws Refusal `unsupported` for a multipart form, another charset or encoding; `too-large` beyond 20 MiB;
 *   `invalid` for bytes that are not UTF-8, too many values, or nesting deeper than 64 levels.
 */
export async function readJsonBytes(ctx: Context): Promise<Buffer> {
  const encoding = requireJsonBody(ctx)
  const count = createJsonCounter(modelCallBounds)
  const bytes = await readBytes(ctx, encoding, bodyLimits.large, count)
  requireUtf8Bytes(bytes)
  return bytes
}

/**
 * The bytes of a JSON body of any length as they arrive, decompressed.
 *
 * @returns them, and their number where it is known before
 * @throws Refusal `unsupported` for a multipart form, another charset or encoding
 */
export function streamJsonBytes(ctx: Context): {
  chunks: AsyncGenerator<Uint8Array>
  byteLength: number | undefined
} {
  const encoding = requireJsonBody(ctx)
  const byteLength = encoding === 'identity' ? ctx.request.length : undefined
  return { chunks: streamBody(ctx, encoding, bodyShareOf(ctx).dropped), byteLength }
}

function requireJsonBody(ctx: Context): ContentEncoding {
  const encoding = requireJsonEncoding(ctx)
  const type = ctx.get('content-type')
  // The header that nearly all clients send needs no parsing.
  const isPlainJson = type === 'application/json' && ctx.headers['content-length'] !== undefined
  if (type !== '' && !isPlainJson) {
    rejectMultipart(ctx, jsonHint)
    requireUtf8(ctx)
  }
  // The forwarded body is JSON, whatever its type was.
  if (!isPlainJson && ctx.is('json', '+json') === false)
    ctx.req.headers['content-type'] = 'application/json'
  allowSlowBody(ctx.req)
  return encoding
}

const jsonHint = 'Send JSON'

const requireJsonEncoding = (ctx: Context): ContentEncoding =>
  requireEncoding(ctx, ['identity', 'gzip', 'deflate'], 'Send the body plain, or with gzip')

/** @throws Refusal `unsupported` with this hint. */
export function requireEncoding<Accepted extends ContentEncoding>(
  ctx: Context,
  accepted: readonly Accepted[],
  hint: string,
): Accepted {
  const encoding = (ctx.get('content-encoding') || 'identity').trim().toLowerCase()
  const match = accepted.find(name => name === encoding)
  if (match) return match
  throw new Refusal('unsupported', 'This Content-Encoding is not supported', hint)
}

/**
 * Refuses a multipart form. Other types are accepted: `fetch` calls a string text, `curl -d` a form,
 * and whether it is JSON shows when it is parsed.
 *
 * @throws Refusal `unsupported` with this hint.
 */
export function rejectMultipart(ctx: Context, hint: string): void {
  if (/^\s*multipart\//i.test(ctx.get('content-type'))) throw unsupportedContentType(hint)
}

/** @throws Refusal `unsupported` with this hint; `invalid` for a request that announces no body. */
export function requireMediaType(ctx: Context, accepted: string[], hint: string): void {
  const type = ctx.is(accepted)
  if (type === null) throw new Refusal('invalid', 'The request has no body', hint)
  if (!type) throw unsupportedContentType(hint)
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
  throw refusal('unsupported', 'unknownCharset')
}

async function readBytes(
  ctx: Context,
  encoding: ContentEncoding,
  bytesMax: number,
  onBytes: (bytes: Uint8Array) => void,
): Promise<Buffer> {
  if (encoding === 'identity' && (ctx.request.length ?? 0) > bytesMax) {
    ctx.req.resume()
    throw refusal('too-large', 'bodyTooLarge')
  }
  const share = bodyShareOf(ctx)
  let length = 0
  const count = (chunk: Uint8Array): void => {
    length += chunk.length
    if (length > bytesMax) throw refusal('too-large', 'bodyTooLarge')
    onBytes(chunk)
    share.hold(length)
  }
  if (encoding === 'identity') return collectBody(ctx, count, share.dropped)
  const chunks = new BodyBytes()
  for await (const chunk of streamBody(ctx, encoding, share.dropped)) {
    count(chunk)
    chunks.push(chunk)
  }
  return chunks.toBuffer()
}

const hasBody = (ctx: Context): boolean =>
  ctx.req.headers['transfer-encoding'] !== undefined || (ctx.request.length ?? 0) > 0
