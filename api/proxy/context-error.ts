import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import type { UpstreamResponse } from '#shared/models/upstream.ts'

/** Providers say in a few hundred bytes that a prompt is too long. */
const errorBytesMax = 65_536

/** Words of OpenAI-compatible providers, Anthropic, Google, Ollama and vLLM for a prompt that does not fit. */
const contextErrorPattern =
  /context[_ ]?(?:length|window|size)|maximum context|prompt is too long|input (?:is )?too long|too many (?:input )?tokens|input token count|exceeds? the (?:maximum|available|model)|(?:reduce|shorten) the length|request_too_large/i

/**
 * Whether an answer refuses its prompt as too long; and the answer, unread. Only a refusal's first 64 KB are read. One
 * that breaks off is returned as far as it came, and then breaks off.
 */
export async function readContextError(
  answer: UpstreamResponse,
): Promise<{ isContextTooLong: boolean; answer: UpstreamResponse }> {
  const { status, headers, body } = answer
  if (status !== 400 && status !== 413 && status !== 422) return { isContextTooLong: false, answer }
  const chunks: Buffer[] = []
  let bytes = 0
  let end: { error?: unknown } | undefined
  const rest = body[Symbol.asyncIterator]() as AsyncGenerator<Buffer>
  while (!end && bytes <= errorBytesMax) {
    try {
      const { done, value } = await rest.next()
      if (done) end = {}
      else {
        chunks.push(value)
        bytes += value.length
      }
    } catch (error) {
      end = { error }
    }
  }
  async function* unread(): AsyncGenerator<Buffer> {
    yield* chunks
    if (!end) yield* rest
    else if ('error' in end) throw end.error
  }
  const isWhole = end !== undefined && !('error' in end)
  const text = isWhole
    ? decode(Buffer.concat(chunks), String(headers['content-encoding'] ?? ''))
    : ''
  return {
    isContextTooLong: contextErrorPattern.test(text),
    answer: { ...answer, body: Readable.from(unread()) },
  }
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
