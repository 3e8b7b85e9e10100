import { Readable } from 'node:stream'
import { createGunzip, createInflate, type Gunzip } from 'node:zlib'
import type { Context } from 'koa'
import { requireUtf8 } from '#api/edge/body.ts'
import { allowLargeBody } from '#api/edge/slow-bodies.ts'
import { Refusal } from '#shared/core/errors.ts'

/** How long a file may be; the length is that of the unpacked bytes. */
export const fileLimits = {
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
export function fileIn(ctx: Context): AsyncIterable<Uint8Array> {
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
  return bytesIn(ctx, encoding)
}

const unpackers = { gzip: createGunzip, deflate: createInflate }

/** The bytes of a body as they arrive, unpacked; what is not read is dropped. */
export const bytesIn = (
  ctx: Context,
  encoding: 'identity' | keyof typeof unpackers,
): AsyncIterable<Uint8Array> => {
  allowLargeBody(ctx.req)
  return encoding === 'identity' ? plain(ctx) : unpacked(ctx, unpackers[encoding]())
}

async function* plain({ req }: Context): AsyncGenerator<Uint8Array> {
  try {
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>
  } finally {
    req.resume()
  }
}

async function* unpacked({ req }: Context, unpacker: Gunzip): AsyncGenerator<Uint8Array> {
  const cut = (error?: Error): void => {
    if (!req.complete) unpacker.destroy(error ?? cutOff())
  }
  req.once('error', cut)
  req.once('close', cut)
  req.pipe(unpacker)
  try {
    yield* unpacker as AsyncIterable<Uint8Array>
  } finally {
    req.off('close', cut)
    req.unpipe(unpacker)
    req.resume()
    unpacker.destroy()
  }
}

const cutOff = (): Error => Object.assign(new Error('The body ended early'), { code: 'ECONNRESET' })

/** Lines are sent this many characters at a time. */
const pieceLength = 64 * 1024

/**
 * Answers with a stream of JSON lines.
 *
 * @throws what fails before the first line, to be answered with its status; what fails later breaks the
 *   stream off.
 */
export async function answerLines(ctx: Context, lines: AsyncGenerator<object>): Promise<void> {
  const first = await lines.next()
  ctx.type = 'application/x-ndjson'
  ctx.body = Readable.from(piecesOf(first, lines), {
    objectMode: false,
    highWaterMark: pieceLength,
  })
}

async function* piecesOf(
  first: IteratorResult<object>,
  rest: AsyncGenerator<object>,
): AsyncGenerator<string> {
  try {
    let piece = ''
    for (let next = first; !next.done; next = await rest.next()) {
      piece += `${JSON.stringify(next.value)}\n`
      if (piece.length < pieceLength) continue
      yield piece
      piece = ''
    }
    if (piece !== '') yield piece
  } finally {
    await rest.return(undefined)
  }
}
