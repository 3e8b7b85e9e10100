import { createHash } from 'node:crypto'

/** A picture of a document, for a model that describes it. */
export type Picture = {
  /** SHA-256 of its bytes in 64 letters, in which no policy finds a number. */
  digest: string
  mediaType: string
  base64: string
}

/** What is taken of one document. Base64 of the largest has 5 MB, which is what Anthropic takes. */
const [picturesMax, allBytesMax, bytesMax] = [20, 16 * 1024 * 1024, 3_750_000]

/** Icons and lines have fewer. */
const bytesMin = 4_096

/** Types that models of all providers take, by the first bytes. */
const types: readonly [RegExp, string][] = [
  [/^\x89PNG\r\n/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8[79]a/, 'image/gif'],
  [/^RIFF[^]{4}WEBP/, 'image/webp'],
]

/** The type of a picture by its bytes; undefined for everything else. */
export function pictureType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  return types.find(([pattern]) => pattern.test(start))?.[1]
}

/** Whether a part of a document can be a picture to take, by its name and size. */
export const mayBePicture = ({ name, bytes }: { name: string; bytes: number }): boolean =>
  bytes <= bytesMax && /\.(?:png|jpe?g|gif|webp)$/i.test(name)

/** Chooses the pictures of a document that a model is to describe: the first 20, each once. */
export class Pictures {
  readonly #digests = new Set<string>()
  #bytes = 0

  get isFull(): boolean {
    return this.#digests.size >= picturesMax
  }

  /**
   * Takes a picture.
   *
   * @param leastBytes below which it is none
   * @returns undefined for one that is to be counted in place of it
   */
  take(bytes: Uint8Array, leastBytes = bytesMin): Picture | undefined {
    const mediaType = pictureType(bytes)
    const isFitting = bytes.length >= leastBytes && bytes.length <= bytesMax
    if (!mediaType || !isFitting || this.isFull) return undefined
    const hex = createHash('sha256').update(bytes).digest('hex')
    const digest = hex.replaceAll(/\d/g, digit => 'ghijklmnop'[Number(digit)]!)
    if (this.#digests.has(digest) || this.#bytes + bytes.length > allBytesMax) return undefined
    this.#digests.add(digest)
    this.#bytes += bytes.length
    return { digest, mediaType, base64: Buffer.from(bytes).toString('base64') }
  }

  /** As `take`, for the address of a picture that has its bytes in it (RFC 2397). */
  takeUrl(url = ''): Picture | undefined {
    const [, base64] = /^data:image\/[\w.+-]+;base64,([^]*)/i.exec(url) ?? []
    return base64 === undefined ? undefined : this.take(Buffer.from(base64, 'base64'))
  }
}
