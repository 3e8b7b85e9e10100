import { Readable } from 'node:stream'
import { createGunzip, createInflate, type Gunzip } from 'node:zlib'
import type { Context } from 'koa'
import { requireUtf8 } from '#api/edge/body.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'
import { Refusal } from '#shared/core/errors.ts'

/** How long a file may be; the length is that of the unpacked bytes. */
export const ndjsonLimits = {
  upload: { lineBytesMax: 256 * 1024, bytesMax: 64 * 1024 * 1024, linesMax: 10_000 },
  // A reflection names everything it covers: up to 100,000 ids in a line.
  import: { lineBytesMax: 8 * 1024 * 1024, bytesMax: 64 * 1024 * 1024, linesMax: 10_000 },
} as const

/**
 * The bytes of a body of JSON lines as they arrive, unpacked. Whoever stops reading early leaves the
 * connection usable: the rest is read and dropped.
 *
 * @throws Refusal `unsupported` for a content type or encoding we do not read. What is wrong with the
 *   bytes is thrown while they are read.
 */
export function readNdjsonBody(ctx: Context): AsyncIterable<Uint8Array> {
  const encoding = (ctx.get('content-encoding') || 'identity').trim().toLowerCase()
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw new Refusal(
      'unsupported',
      'This Content-Encoding is not supported',
      'Send the file plain, or with gzip',
    )
  }
  if (ctx.get('content-type') !== '' && !ctx.is('application/x-ndjson', 'text/plain')) {
    throw new Refusal(
      'unsupported',
      'This Content-Type is not supported',
      'Send JSON lines with Content-Type: application/x-ndjson',
    )
  }
  requireUtf8(ctx)
  return readBodyBytes(ctx, encoding)
}

const decompressors = { gzip: createGunzip, deflate: createInflate }

/** The bytes of a body as they arrive, unpacked; what is not read is dropped. */
export const readBodyBytes = (
  ctx: Context,
  encoding: 'identity' | keyof typeof decompressors,
): AsyncIterable<Uint8Array> => {
  allowSlowBody(ctx.req)
  return encoding === 'identity'
    ? readIdentity(ctx)
    : readDecompressed(ctx, decompressors[encoding]())
}

async function* readIdentity({ req }: Context): AsyncGenerator<Uint8Array> {
  try {
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  } finally {
    req.resume()
  }
}

async function* readDecompressed(
  { req }: Context,
  decompressor: Gunzip,
): AsyncGenerator<Uint8Array> {
  const abort = (error?: Error): void => {
    if (!req.complete) decompressor.destroy(error ?? bodyEndedEarly())
  }
  req.once('error', abort)
  req.once('close', abort)
  req.pipe(decompressor)
  try {
    yield* decompressor as AsyncIterable<Uint8Array>
  } finally {
    req.off('close', abort)
    req.unpipe(decompressor)
    req.resume()
    decompressor.destroy()
  }
}

const bodyEndedEarly = (): Error =>
  Object.assign(new Error('The body ended early'), { code: 'ECONNRESET' })

/** Lines are sent this many characters at a time. */
const chunkLength = 64 * 1024

/**
 * Answers with a stream of JSON lines.
 *
 * @throws what fails before the first line, to be answered with its status; what fails later breaks the
 *   stream off.
 */
export async function sendNdjson(ctx: Context, lines: AsyncGenerator<object>): Promise<void> {
  const first = await lines.next()
  ctx.type = 'application/x-ndjson'
  ctx.body = Readable.from(ndjsonChunks(first, lines), {
    objectMode: false,
    highWaterMark: chunkLength,
  })
}

async function* ndjsonChunks(
  first: IteratorResult<object>,
  rest: AsyncGenerator<object>,
): AsyncGenerator<string> {
  try {
    let chunk = ''
    for (let next = first; !next.done; next = await rest.next()) {
      chunk += `${JSON.stringify(next.value)}\n`
      if (chunk.length < chunkLength) continue
      yield chunk
      chunk = ''
    }
    if (chunk !== '') yield chunk
  } finally {
    await rest.return(undefined)
  }
}
