import type { Transform } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib'
import type { Reply, ReplyParser } from '#api/proxy/dialects/dialect.ts'

const decoders: Record<string, () => Transform> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
}

/** Most bytes that wait for decompression, and that it may produce: a small answer can inflate to gigabytes. */
const pendingBytesMax = 4 * 1024 * 1024
const inflatedBytesMax = 64 * 1024 * 1024

/**
 * Decompresses a response for its parser, in bounded memory. Requests ask for no compression, but some
 * providers compress all the same; the client gets their bytes unchanged. The parser gets the beginning
 * of a response that cannot be decompressed, or not fast enough.
 *
 * @param encoding the provider's `content-encoding`, empty when it sent none
 */
export function createDecodingParser(
  parser: ReplyParser,
  encoding: string,
): Pick<ReplyParser, 'feed'> & { end(): Promise<Reply> } {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') {
    return { feed: parser.feed, end: () => Promise.resolve(parser.end()) }
  }
  const create = Object.hasOwn(decoders, name) ? decoders[name] : undefined
  if (!create) return { feed() {}, end: () => Promise.resolve(parser.end()) }

  const decoder = create()
  const closed = new Promise(resolve => decoder.once('close', resolve))
  let inflatedBytes = 0
  decoder
    .on('data', (bytes: Buffer) => {
      inflatedBytes += bytes.length
      parser.feed(bytes)
      if (inflatedBytes > inflatedBytesMax) decoder.destroy()
    })
    // An interrupted response ends within its compressed data.
    .on('error', () => {})
  return {
    feed(bytes) {
      if (decoder.destroyed) return
      // The relay does not wait for the parser: a decoder that falls behind is stopped.
      if (decoder.writableLength > pendingBytesMax) decoder.destroy()
      else decoder.write(bytes)
    },
    async end() {
      if (!decoder.destroyed) decoder.end()
      await closed
      return parser.end()
    },
  }
}
