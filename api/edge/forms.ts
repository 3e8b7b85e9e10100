import type { Context } from 'koa'
import { Refusal } from '#shared/core/errors.ts'

/**
 * Refuses a form that a page of another origin has sent: a browser adds to it what it holds for this service.
 * Browsers send `Sec-Fetch-Site` or `Origin` with every POST; other clients may send neither.
 *
 * @throws Refusal `invalid`.
 */
export function refuseForeignForm(ctx: Context, publicUrl: string | null): void {
  const site = ctx.get('sec-fetch-site')
  const origin = ctx.get('origin')
  const isOwn =
    site === '' ? origin === '' || isOwnOrigin(ctx, origin, publicUrl) : site === 'same-origin'
  if (isOwn) return
  throw new Refusal('invalid', 'This form was sent by a page of another origin')
}

/** Whether pages of an origin are ours: of the configured one, where there is one, else of the host that was asked. */
export const isOwnOrigin = (ctx: Context, origin: string, publicUrl: string | null): boolean =>
  URL.canParse(origin) &&
  (publicUrl === null ? new URL(origin).host === ctx.host : new URL(origin).origin === publicUrl)

const formBytesMax = 1024 * 1024

/** @throws Refusal `too-large` beyond 1 MiB. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > formBytesMax) throw new Refusal('too-large', 'The form is larger than 1 MiB')
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
}
