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

/** What waits to be decompressed, and what may come of it: a small answer can unfold into gigabytes. */
const pendingBytesMax = 4 * 1024 * 1024
const inflatedBytesMax = 64 * 1024 * 1024

/** A listener whose last word may take a moment. */
type DecodingParser = Pick<ReplyParser, 'feed'> & { end(): Promise<Reply> }

/**
 * Hears what compressed bytes say, in bounded memory. Providers are asked not to compress, and some do
 * all the same; the client gets their bytes as they are. Of an answer that cannot be read, or not in
 * time, what came before is heard.
 *
 * @param encoding the provider's `content-encoding`, empty when it sent none.
 */
export function createDecodingParser(parser: ReplyParser, encoding: string): DecodingParser {
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
    // An answer that broke off ends in the middle of what it says.
    .on('error', () => {})
  return {
    feed(bytes) {
      if (decoder.destroyed) return
      // The relay does not wait for memory: whoever cannot keep up hears no more.
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
