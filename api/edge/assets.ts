import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Context } from 'koa'

/** A file of a page, held in memory in every encoding it is asked for. */
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
 * Answers with an asset: compressed as the client takes it, 304 when it has it already. Pages revalidate
 * on every visit, so an upgraded service is never shown with the scripts of the one before.
 */
export async function sendAsset(ctx: Context, asset: Asset): Promise<void> {
  ctx.set('Cache-Control', 'no-cache')
  ctx.set('ETag', asset.etag)
  ctx.vary('Accept-Encoding')
  // Not `ctx.fresh`: it looks away when a request says `no-cache`, as fetch does beside a tag.
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
