import type { Transform } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib'
import type { Reply, ReplyListener } from '#api/proxy/dialects/dialect.ts'

const decoders: Record<string, () => Transform> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
}

/** What waits to be decompressed, and what may come of it: a small answer can unfold into gigabytes. */
const waitingMax = 4 * 1024 * 1024
const unfoldedMax = 64 * 1024 * 1024

/** A listener whose last word may take a moment. */
type PatientListener = Pick<ReplyListener, 'hear'> & { end(): Promise<Reply> }

/**
 * Hears what compressed bytes say, in bounded memory. Providers are asked not to compress, and some do
 * all the same; the client gets their bytes as they are. Of an answer that cannot be read, or not in
 * time, what came before is heard.
 *
 * @param encoding the provider's `content-encoding`, empty when it sent none.
 */
export function decompressing(listener: ReplyListener, encoding: string): PatientListener {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') {
    return { hear: listener.hear, end: () => Promise.resolve(listener.end()) }
  }
  const create = Object.hasOwn(decoders, name) ? decoders[name] : undefined
  if (!create) return { hear() {}, end: () => Promise.resolve(listener.end()) }

  const decoder = create()
  const over = new Promise(resolve => decoder.once('close', resolve))
  let unfolded = 0
  decoder
    .on('data', (bytes: Buffer) => {
      unfolded += bytes.length
      listener.hear(bytes)
      if (unfolded > unfoldedMax) decoder.destroy()
    })
    // An answer that broke off ends in the middle of what it says.
    .on('error', () => {})
  return {
    hear(bytes) {
      if (decoder.destroyed) return
      // The relay does not wait for memory: whoever cannot keep up hears no more.
      if (decoder.writableLength > waitingMax) decoder.destroy()
      else decoder.write(bytes)
    },
    async end() {
      if (!decoder.destroyed) decoder.end()
      await over
      return listener.end()
    },
  }
}
