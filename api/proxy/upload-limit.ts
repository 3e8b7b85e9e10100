import { Refusal } from '#shared/core/errors.ts'

/** Longest body that is streamed to a provider: the longest file that one takes. */
export const uploadBytesMax = 512 * 1024 * 1024

const tooLarge = (bytesMax: number): Refusal =>
  new Refusal('too-large', `The body is larger than ${bytesMax / 1024 / 1024} MiB`)

/**
 * Passes bytes on up to a maximum.
 *
 * @param byteLength as the request declares it
 * @throws Refusal `too-large`, at the first chunk when the request declares more
 */
export async function* limitBytes(
  source: AsyncIterable<Uint8Array>,
  byteLength: number | undefined,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > bytesMax || (byteLength ?? 0) > bytesMax) throw tooLarge(bytesMax)
    yield chunk
  }
}
