import type { Context } from 'koa'
import { bodyLimits, requireUtf8 } from '#api/edge/body.ts'
import { readBodyBytes } from '#api/edge/ndjson.ts'
import { Refusal } from '#shared/core/errors.ts'

const bytesMax = bodyLimits.large

/**
 * The bytes of a model request, unpacked: what leaves again is made of these, not of what they mean.
 *
 * @throws Refusal `unsupported` for a content type or encoding we do not read; `too-large` beyond 20 MiB.
 */
export async function readRequestBytes(ctx: Context): Promise<Buffer> {
  const encoding = (ctx.get('content-encoding') || 'identity').trim().toLowerCase()
  if (encoding !== 'identity' && encoding !== 'gzip' && encoding !== 'deflate') {
    throw new Refusal(
      'unsupported',
      'This Content-Encoding is not supported',
      'Send the body plain, or with gzip',
    )
  }
  if (ctx.get('content-type') !== '' && !ctx.is('json', '+json')) {
    throw new Refusal(
      'unsupported',
      'This Content-Type is not supported',
      'Send JSON with Content-Type: application/json',
    )
  }
  requireUtf8(ctx)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of readBodyBytes(ctx, encoding)) {
    bytes += chunk.length
    if (bytes > bytesMax) {
      throw new Refusal('too-large', 'The body is larger than this endpoint takes')
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
