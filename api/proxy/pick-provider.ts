import type { Context } from 'koa'
import { providerKeyFromRequest } from '#api/proxy/credentials.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  providerOfKey,
  providersWithFormat,
  type ApiFormat,
  type Providers,
} from '#shared/core/provider-registry.ts'

/**
 * The provider of a request that names no model: that of the header `X-Provider`, else the one whose keys
 * begin like the request's, else the first that serves the format.
 *
 * @throws Refusal `invalid` for a provider that does not serve it.
 */
export const pickProvider = (ctx: Context, format: ApiFormat, providers: Providers): string =>
  namedProvider(ctx, format, providers) ?? providersWithFormat(providers, format)[0]!

/** The provider that the header `X-Provider` or the request's own key shows; undefined without either. */
export function namedProvider(
  ctx: Context,
  format: ApiFormat,
  providers: Providers,
): string | undefined {
  const served = providersWithFormat(providers, format)
  const name = ctx.get('x-provider').trim().toLowerCase()
  const named = served.find(provider => provider === name)
  if (name !== '' && named === undefined) {
    throw new Refusal(
      'invalid',
      `X-Provider: ${name.slice(0, 32)} does not serve this path`,
      `It is served by ${served.join(', ')}`,
    )
  }
  const ofKey = providerOfKey(providerKeyFromRequest(ctx) ?? '')
  return named ?? served.find(provider => provider === ofKey)
}
