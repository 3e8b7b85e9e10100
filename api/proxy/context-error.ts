import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** Providers say in a few hundred bytes that a prompt is too long. */
const errorBytesMax = 65_536

/** Words of OpenAI-compatible providers, Anthropic, Google, Ollama and vLLM for a prompt that does not fit. */
const contextErrorPattern =
  /context[_ ]?(?:length|window|size)|maximum context|prompt is too long|input (?:is )?too long|too many (?:input )?tokens|input token count|exceeds? the (?:maximum|available|model)|(?:reduce|shorten) the length|request_too_large/i

/**
 * Whether an answer refuses its prompt as too long; and the answer, unread. Only a refusal's first
 * 64 KB are read. One that breaks off is returned as far as it came, and then breaks off.
 */
export async function readContextError(
  answer: UpstreamResponse,
): Promise<{ isContextTooLong: boolean; answer: UpstreamResponse }> {
  const { status, headers } = answer
  if (status !== 400 && status !== 413 && status !== 422) return { isContextTooLong: false, answer }
  const chunks: Buffer[] = []
  let bytes = 0
  const reader = answer.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  while (bytes <= errorBytesMax) {
    const next = await reader.next().catch((error: unknown) => ({ error }))
    if ('error' in next) {
      const body = Readable.from(interrupted(chunks, next.error))
      return { isContextTooLong: false, answer: { ...answer, body } }
    }
    const { done, value } = next
    if (done) {
      const body = Buffer.concat(chunks)
      const text = decode(body, String(headers['content-encoding'] ?? ''))
      const unread = { ...answer, body: Readable.from([body]) }
      return { isContextTooLong: contextErrorPattern.test(text), answer: unread }
    }
    chunks.push(value)
    bytes += value.length
  }
  return {
    isContextTooLong: false,
    answer: { ...answer, body: Readable.from(rest(chunks, reader)) },
  }
}

function* interrupted(chunks: readonly Buffer[], error: unknown) {
  yield* chunks
  throw error
}

async function* rest(chunks: readonly Buffer[], reader: AsyncIterator<Buffer>) {
  yield* chunks
  for (let next = await reader.next(); !next.done; next = await reader.next()) yield next.value
}

const decoders: Record<string, (body: Buffer, options: { maxOutputLength: number }) => Buffer> = {
  gzip: gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
}

/** Empty when the body cannot be decoded. */
function decode(body: Buffer, encoding: string): string {
  if (encoding === '' || encoding === 'identity') return body.toString()
  try {
    return decoders[encoding]?.(body, { maxOutputLength: errorBytesMax }).toString() ?? ''
  } catch {
    return ''
  }
}
