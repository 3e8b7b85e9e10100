import { createGunzip, createInflate, type Gunzip } from 'node:zlib'
import type { Context } from 'koa'
import { Refusal } from '#shared/core/errors.ts'

const decompressors = { gzip: createGunzip, deflate: createInflate }

export type ContentEncoding = 'identity' | keyof typeof decompressors

/**
 * The decompressed bytes of a body as they arrive. A reader that stops early leaves the connection usable:
 * the rest is read and dropped.
 *
 * @param dropped ends the reading when it rejects, also while nothing arrives
 * @throws an error with the code of zlib for broken compression, a Refusal when the body ends early.
 */
export function streamBody(
  ctx: Context,
  encoding: ContentEncoding,
  dropped?: Promise<never>,
): AsyncGenerator<Uint8Array> {
  const chunks =
    encoding === 'identity' ? readIdentity(ctx) : readDecompressed(ctx, decompressors[encoding]())
  return dropped ? readUntil(dropped, chunks) : chunks
}

async function* readUntil(
  dropped: Promise<never>,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const { done, value } = await Promise.race([chunks.next(), dropped])
      if (done) return
      yield value
    }
  } finally {
    // With a silent client this would wait for its next bytes.
    void chunks.return(undefined).catch(() => {})
  }
}

/** As many chunks are joined where they are small: each is an object of some hundred bytes. */
const joinedChunks = 256
const joinedBytesMax = 1024 * 1024

/** Gathers the chunks of a body, in little more memory than their bytes. */
export class BodyBytes {
  #parts: Uint8Array[] = []
  #recent: Uint8Array[] = []
  #recentBytes = 0

  push(chunk: Uint8Array): void {
    this.#recent.push(chunk)
    this.#recentBytes += chunk.length
    if (this.#recent.length < joinedChunks) return
    const isLarge = this.#recentBytes > joinedBytesMax
    this.#parts = this.#parts.concat(isLarge ? this.#recent : Buffer.concat(this.#recent))
    this.#recent = []
    this.#recentBytes = 0
  }

  /** The chunks: 4 KiB or more each on average, but for the last 256. */
  get parts(): readonly Uint8Array[] {
    return [...this.#parts, ...this.#recent]
  }

  toBuffer(): Buffer {
    return Buffer.concat(this.parts)
  }

  /** Frees the memory of all chunks, which nothing else may read: a collector comes to it long after. */
  free(): void {
    for (const { buffer, byteLength } of this.parts)
      if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
    this.#parts = []
    this.#recent = []
  }
}

/**
 * All bytes of a body that is not compressed: as `streamBody`, with one promise for all of its chunks.
 *
 * @param onBytes is called with each chunk; what it throws ends the reading
 */
export function collectBody(
  { req }: Context,
  onBytes: (bytes: Buffer) => void,
  dropped: Promise<never>,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks = new BodyBytes()
    const end = (): void => {
      req.off('data', take).off('end', succeed).off('error', fail).off('close', fail)
      req.resume()
    }
    const succeed = (): void => {
      end()
      resolve(chunks.toBuffer())
      chunks.free()
    }
    const fail = (error?: Error): void => {
      end()
      chunks.free()
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
    dropped.catch(fail)
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

/** A client left before its body was read. */
export const bodyEndedEarly = (): Refusal => new Refusal('invalid', 'The body ended early')
