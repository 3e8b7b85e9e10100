import { createGunzip, createInflate, type Gunzip } from 'node:zlib'
import type { Context } from 'koa'

const decompressors = { gzip: createGunzip, deflate: createInflate }

export type ContentEncoding = 'identity' | keyof typeof decompressors

/**
 * The decompressed bytes of a body as they arrive. A reader that stops early leaves the connection usable:
 * the rest is read and dropped.
 *
 * @throws an error with the code of zlib for broken compression, `ECONNRESET` when the body ends early.
 */
export const streamBody = (ctx: Context, encoding: ContentEncoding): AsyncIterable<Uint8Array> =>
  encoding === 'identity' ? readIdentity(ctx) : readDecompressed(ctx, decompressors[encoding]())

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
