import { createGunzip, createInflate, type Gunzip } from 'node:zlib'
import type { Context } from 'koa'
import { Refusal } from '#shared/core/errors.ts'

const decompressors = { gzip: createGunzip, deflate: createInflate }

export type ContentEncoding = 'identity' | keyof typeof decompressors

/**
 * The decompressed bytes of a body as they arrive. A reader that stops early leaves the connection usable:
 * the rest is read and dropped.
 *
 * @throws an error with the code of zlib for broken compression, a Refusal when the body ends early.
 */
export const streamBody = (ctx: Context, encoding: ContentEncoding): AsyncIterable<Uint8Array> =>
  encoding === 'identity' ? readIdentity(ctx) : readDecompressed(ctx, decompressors[encoding]())

/**
 * All bytes of a body that is not compressed: as `streamBody`, with one promise for all of its chunks.
 *
 * @param onBytes is called with each chunk; what it throws ends the reading
 */
export function collectBody({ req }: Context, onBytes: (bytes: Buffer) => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const end = (): void => {
      req.off('data', take).off('end', succeed).off('error', fail).off('close', fail)
      req.resume()
    }
    const succeed = (): void => {
      end()
      resolve(Buffer.concat(chunks))
    }
    const fail = (error?: Error): void => {
      end()
      reject(error ?? bodyEndedEarly())
    }
    const take = (chunk: Buffer): void => {
      try {
        onBytes(chunk)
        chunks.push(chunk)
      } catch (error) {
        fail(error as Error)
      }
    }
    if (req.destroyed && !req.readableEnded) return fail()
    req.on('data', take).once('end', succeed).once('error', fail).once('close', fail)
  })
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

/** Of a client that left before its body was read. */
export const bodyEndedEarly = (): Refusal => new Refusal('invalid', 'The body ended early')
