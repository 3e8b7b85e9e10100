import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { admitBody, bodyShareOf, releaseBody } from '#api/edge/body-budget.ts'
import { requireEncoding, requireMediaType } from '#api/edge/body.ts'
import { streamBody } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { parsePassthroughRequest } from '#api/proxy/dialects/pass-through-request.ts'
import { readMultipartForm } from '#api/proxy/multipart-form.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import { readJsonOrStream, limitBytes, uploadBytesMax } from '#api/proxy/streamed-json.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

/** The body of a request without memory; `name` is the model under the provider's name. */
export type ParsedBody = {
  /** The model it names. */
  model: string | undefined
  /** The bytes for the provider; null when there are none. Call once. */
  body(name?: string): Buffer | Readable | null
  /** Their number; undefined where it is unknown before they are sent. */
  byteLength?(name?: string): number | undefined
  /** The headers that describe unread bytes. */
  headers?: Record<string, string>
  /** Reads and drops what has not been sent. */
  discard(): Promise<void>
}

const noBody: ParsedBody = { model: undefined, body: () => null, discard: async () => {} }

/**
 * @throws Refusal `invalid`, `unsupported` or `too-large` for a body that the route does not take.
 */
export function parsePassthroughBody(
  ctx: Context,
  route: ProviderRoute,
  format: ApiFormat,
): ParsedBody | Promise<ParsedBody> {
  if (route.body === undefined) return noBody
  if (route.body === 'bytes') return streamUnread(ctx)
  if (route.body === 'form' || (route.body === 'either' && ctx.is('multipart/form-data'))) {
    return parseFormBody(ctx, route)
  }
  return route.counts ? parseCountedBody(ctx, format) : parseJsonBody(ctx, route)
}

/** JSON over 20 MiB is not read: switches in it are not removed. */
async function parseJsonBody(ctx: Context, { shape }: ProviderRoute): Promise<ParsedBody> {
  const read = await readJsonOrStream(ctx)
  if (!Buffer.isBuffer(read)) {
    await discardUnlessValid(read, () => shape?.check(sanitizeJson({ model: read.model })))
    return read
  }
  await admitBody(ctx, read.length)
  const request = parsePassthroughRequest(read.length > 0 ? read : Buffer.from('{}'))
  releaseBody(ctx)
  const { model } = request
  shape?.check(sanitizeJson({ model }))
  return {
    model,
    body: (name = model ?? '') => request.serialize(name),
    discard: async () => {},
  }
}

/** A request as a model call has it, switches in its messages included. */
async function parseCountedBody(ctx: Context, format: ApiFormat): Promise<ParsedBody> {
  const read = await readJsonOrStream(ctx)
  if (!Buffer.isBuffer(read)) return read
  await admitBody(ctx, read.length)
  const request = dialects[format].parseRequest(read.length > 0 ? read : Buffer.from('{}'))
  releaseBody(ctx)
  const { model } = request
  return {
    model,
    body: name => request.serialize({ model: name === model ? undefined : name }),
    discard: async () => {},
  }
}

/** Bytes of any kind as they arrive, in their encoding. */
function streamUnread(ctx: Context): ParsedBody {
  const { length } = ctx.request
  const isEmpty = !ctx.req.headers['transfer-encoding'] && (length ?? 0) === 0
  if (isEmpty) return noBody
  allowSlowBody(ctx.req)
  const chunks = limitBytes(streamBody(ctx, 'identity'), length, uploadBytesMax)
  const encoding = ctx.get('content-encoding')
  return {
    model: undefined,
    body: () => Readable.from(chunks, { objectMode: false }),
    byteLength: () => length,
    headers: encoding === '' ? {} : { 'content-encoding': encoding },
    discard: async () => void (await chunks.return(undefined)),
  }
}

async function parseFormBody(ctx: Context, { shape }: ProviderRoute): Promise<ParsedBody> {
  requireMediaType(ctx, ['multipart/form-data'], 'Send multipart/form-data with file and model')
  const encoding = requireEncoding(ctx, ['identity'], 'Send it plain')
  const declared = ctx.request.length
  allowSlowBody(ctx.req)
  const share = bodyShareOf(ctx)
  const chunks = limitBytes(streamBody(ctx, encoding, share.dropped), declared, uploadBytesMax)
  const type = ctx.get('content-type')
  const form = await readMultipartForm(chunks, type, shape === undefined, share)
  await discardUnlessValid(form, () => shape?.check(sanitizeJson({ model: form.model, file: '' })))
  const renamed = (name?: string): string | undefined => (name === form.model ? undefined : name)
  return {
    model: form.model,
    body: name => Readable.from(form.bytes(renamed(name)), { objectMode: false }),
    byteLength(name) {
      const other = renamed(name)
      return other === undefined || declared === undefined
        ? declared
        : declared + form.addedBytes(other)
    },
    discard: form.discard,
  }
}

/** Unread bytes would hold up the connection of a client that is still sending: it would see no refusal. */
async function discardUnlessValid(
  body: Pick<ParsedBody, 'discard'>,
  check: () => unknown,
): Promise<void> {
  try {
    check()
  } catch (error) {
    await body.discard()
    throw error
  }
}
