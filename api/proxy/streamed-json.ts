import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { bodyShareOf } from '#api/edge/body-budget.ts'
import { BodyBytes, collectBody } from '#api/edge/body-stream.ts'
import { bodyLimits, streamJsonBytes } from '#api/edge/body.ts'
import { findTopLevelString } from '#api/proxy/json/top-level-string.ts'
import { invalidJson } from '#shared/core/refusals.ts'
import { Refusal } from '#shared/core/errors.ts'

/** A JSON body over 20 MiB: its beginning is read, for the model, and the rest is streamed. */
export type StreamedJson = {
  /** Undefined when the first 20 MiB name none. */
  model: string | undefined
  /** All bytes, with the given model in place of its own. Call once. */
  body(model: string | undefined): Readable
  /** Their number; undefined where it is unknown before they are sent. */
  byteLength(model: string | undefined): number | undefined
  /** Reads and drops what has not been sent. */
  discard(): Promise<void>
}

/**
 * Reads a JSON body; of one over 20 MiB only the beginning.
 *
 * @throws Refusal `unsupported` as `readJsonBytes`; `invalid` when the model it names is no JSON; `too-large`
 *   beyond 512 MiB, also while it is sent
 */
export async function readJsonOrStream(ctx: Context): Promise<Buffer | StreamedJson> {
  const { chunks: source, byteLength } = streamJsonBytes(ctx)
  const share = bodyShareOf(ctx)
  let length = 0
  const count = (chunk: Uint8Array): void => share.hold((length += chunk.length))
  if (byteLength !== undefined && byteLength <= bodyLimits.large)
    return collectBody(ctx, count, share.dropped)
  const chunks = limitBytes(source, byteLength, uploadBytesMax)
  const parts = new BodyBytes()
  while (length <= bodyLimits.large) {
    const { done, value } = await chunks.next()
    if (done) return parts.toBuffer()
    parts.push(value)
    count(value)
  }
  const head = parts.toBuffer()
  const range = findTopLevelString(head, 'model')
  const discard = async (): Promise<void> => void (await chunks.return(undefined))
  const model = range && parseModel(head.toString('utf8', range.at, range.end))
  if (model === null) {
    await discard()
    throw invalidJson()
  }
  const renamed = (name: string | undefined): string | undefined =>
    range === undefined || name === undefined || name === model ? undefined : JSON.stringify(name)
  async function* bytes(name: string | undefined): AsyncGenerator<Uint8Array> {
    const text = renamed(name)
    if (text === undefined || !range) yield head
    else {
      yield head.subarray(0, range.at)
      yield Buffer.from(text)
      yield head.subarray(range.end)
    }
    share.release()
    yield* chunks
  }
  return {
    model,
    body: name => Readable.from(bytes(name), { objectMode: false }),
    byteLength(name) {
      const text = renamed(name)
      if (byteLength === undefined || text === undefined || !range) return byteLength
      return byteLength + Buffer.byteLength(text) - (range.end - range.at)
    },
    discard,
  }
}

/** The text of a model's name; null when it is no JSON: the grammar of the beginning has not been checked. */
function parseModel(json: string): string | null {
  try {
    return JSON.parse(json) as string
  } catch {
    return null
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
