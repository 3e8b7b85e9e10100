import { Readable } from 'node:stream'
import type { BodyShare } from '#api/edge/body-budget.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A body of which the beginning was read, for the model it names; the rest is streamed. */
export type StreamedBody = {
  /** Undefined when the beginning names none. */
  model: string | undefined
  /** All bytes, with the given model in place of its own. Call once. */
  bytes(model?: string): Readable
  /** Their number; undefined where it is unknown before they are sent. */
  byteLength(model?: string): number | undefined
  /** Reads and drops what has not been sent, so that the connection can be reused. */
  discard(): Promise<void>
}

export type StreamedBodyParts = {
  head: Buffer
  /** The model, as text and by its place in the head, and how another one is written there. */
  model: { name: string; at: number; end: number } | undefined
  write(name: string): string
  /** What follows the head. */
  chunks: AsyncGenerator<Uint8Array>
  /** The length of the whole body, where it is known. */
  byteLength: number | undefined
  /** Counts the head while it is in memory. */
  share: Pick<BodyShare, 'release'> | undefined
}

export function createStreamedBody(parts: StreamedBodyParts): StreamedBody {
  const { head, model, write, chunks, byteLength, share } = parts
  const renamed = (name: string | undefined): Buffer | undefined =>
    model === undefined || name === undefined || name === model.name
      ? undefined
      : Buffer.from(write(name))
  async function* bytesOf(name: string | undefined): AsyncGenerator<Uint8Array> {
    const text = renamed(name)
    if (text && model) {
      yield head.subarray(0, model.at)
      yield text
      yield head.subarray(model.end)
    } else yield head
    share?.release()
    yield* chunks
  }
  return {
    model: model?.name,
    bytes: name => Readable.from(bytesOf(name), { objectMode: false }),
    byteLength(name) {
      const text = renamed(name)
      if (byteLength === undefined || !text || !model) return byteLength
      return byteLength + text.length - (model.end - model.at)
    },
    discard: async () => void (await chunks.return(undefined)),
  }
}

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
