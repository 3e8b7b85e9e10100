import { Refusal } from '#shared/core/errors.ts'
import { providerOfKey } from '#shared/core/provider-registry.ts'

/**
 * Refuses a key that is plainly another provider's, before it leaves: the provider would learn it.
 *
 * @throws Refusal `invalid` naming both providers.
 */
export function requireKeyForm(provider: string, key: string): void {
  const owner = providerOfKey(key)
  if (owner === undefined || owner === provider) return
  throw new Refusal(
    'invalid',
    `This provider key is one of ${owner}, and the request is for ${provider}; it was not sent`,
    `Send a key of ${provider}, or name a model of ${owner}`,
  )
}
