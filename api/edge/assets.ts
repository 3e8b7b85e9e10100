import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Context } from 'koa'

/** A file of a page, cached in memory in every encoding that was requested. */
export type Asset = { type: string; bytes: Buffer; etag: string; encoded: Map<string, Buffer> }

/** @param type media type with its charset */
export const createAsset = (type: string, content: Buffer | string): Asset => {
  const bytes = Buffer.from(content as string)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  return { type, bytes, etag, encoded: new Map() }
}

const encoders: Record<string, (bytes: Buffer) => Promise<Buffer>> = {
  br: bytes => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: bytes => zip(bytes, { level: 9 }),
}
const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

/**
 * Answers with an asset: compressed as the client accepts it, 304 when the client has it. Pages revalidate
 * on every visit, so that after an upgrade no page runs the scripts of the version before.
 */
export async function sendAsset(ctx: Context, asset: Asset): Promise<void> {
  ctx.set('Cache-Control', 'no-cache')
  ctx.set('ETag', asset.etag)
  ctx.vary('Accept-Encoding')
  // `ctx.fresh` is false for a request with `no-cache`, which fetch sends together with a tag.
  if (ctx.get('if-none-match') === asset.etag) return void (ctx.status = 304)
  ctx.status = 200
  const encoding = ctx.acceptsEncodings('br', 'gzip', 'identity')
  ctx.body = encoding && encoders[encoding] ? await encodeAsset(ctx, asset, encoding) : asset.bytes
  ctx.type = asset.type
}

async function encodeAsset(ctx: Context, asset: Asset, encoding: string): Promise<Buffer> {
  const known = asset.encoded.get(encoding) ?? (await encoders[encoding]!(asset.bytes))
  asset.encoded.set(encoding, known)
  ctx.set('Content-Encoding', encoding)
  return known
}
