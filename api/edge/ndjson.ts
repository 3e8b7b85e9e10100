import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { rejectMultipart, requireEncoding, requireUtf8 } from '#api/edge/body.ts'
import { bodyShareOf } from '#api/edge/body-budget.ts'
import { streamBody } from '#api/edge/body-stream.ts'
import { allowSlowBody } from '#api/edge/body-timeouts.ts'

/** Limits of a file, in decompressed bytes. */
export const ndjsonLimits = {
  upload: {
    lineBytesMax: 256 * 1024,
    // Many JSON writers escape all but ASCII, with up to six bytes for one.
    escapedBytesMax: 6 * 256 * 1024,
    bytesMax: 64 * 1024 * 1024,
    linesMax: 10_000,
  },
  // A reflection lists everything it covers: up to 100,000 ids in a line.
  import: { lineBytesMax: 8 * 1024 * 1024, bytesMax: 64 * 1024 * 1024, linesMax: 10_000 },
} as const

/**
 * The decompressed bytes of a body of JSON lines as they arrive, whatever its content type.
 *
 * @throws Refusal `unsupported` for a multipart form, another charset or encoding; what is wrong with the
 *   bytes is thrown while they are read.
 */
export function readNdjsonBody(ctx: Context): AsyncIterable<Uint8Array> {
  const encoding = requireEncoding(ctx, ['identity', 'gzip'], 'Send the file plain, or with gzip')
  rejectMultipart(ctx, 'Send the file itself, as JSON lines')
  requireUtf8(ctx)
  allowSlowBody(ctx.req)
  return countLine(ctx, encoding)
}

const newline = 0x0a

/** Counts the bytes of an unfinished line, which are held. */
async function* countLine(ctx: Context, encoding: 'identity' | 'gzip'): AsyncGenerator<Uint8Array> {
  const share = bodyShareOf(ctx)
  let held = 0
  for await (const chunk of streamBody(ctx, encoding, share.dropped)) {
    const lineEnd = chunk.lastIndexOf(newline)
    held = lineEnd < 0 ? held + chunk.length : chunk.length - lineEnd
    // Nothing is kept of a line that is too long.
    share.hold(Math.min(held, ndjsonLimits.import.lineBytesMax))
    yield chunk
  }
  share.release()
}

/** Lines are sent this many characters at a time. */
const chunkLength = 64 * 1024

/**
 * Answers with a stream of JSON lines, whose generator ends with it.
 *
 * @throws what fails before the first line, which gets a status; a later failure aborts the stream.
 */
export async function sendNdjson(ctx: Context, lines: AsyncGenerator<object>): Promise<void> {
  const first = await lines.next()
  ctx.type = 'application/x-ndjson'
  const body = Readable.from(ndjsonChunks(first, lines), {
    objectMode: false,
    highWaterMark: chunkLength,
  })
  // However it ends: one that is never read, as with HEAD, ends before its generator has begun.
  body.once('close', () => void lines.return(undefined).catch(() => {}))
  ctx.body = body
}

async function* ndjsonChunks(
  first: IteratorResult<object>,
  rest: AsyncGenerator<object>,
): AsyncGenerator<string> {
  let chunk = ''
  for (let next = first; !next.done; next = await rest.next()) {
    chunk += `${JSON.stringify(next.value)}\n`
    if (chunk.length < chunkLength) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}
