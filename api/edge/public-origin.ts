import type { Context } from 'koa'

/** The origin under which a client reached the service, behind a router that ends TLS too. */
export function publicOrigin(ctx: Context): string {
  const forwarded = ctx.get('x-forwarded-proto').toLowerCase()
  const protocol = /^https?$/.test(forwarded) ? forwarded : ctx.protocol
  return `${protocol}://${ctx.host}`
}
