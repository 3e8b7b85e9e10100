import { Refusal } from '#shared/core/errors.ts'
import { isProviderName, openProviderKeys } from '#shared/access/provider-key.ts'
import type { OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import { openCompletionModel } from '#shared/models/completion.ts'
import { isSelfHosted, providers } from '#shared/core/provider-registry.ts'
import type { CompletionModel } from '#shared/models/completion-model.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Config } from '#shared/core/config.ts'

export type ProcessorModel = {
  /** Provider-prefixed. */
  model: string
  answeringModel: CompletionModel
}

/**
 * A model of the organization's provider, reached with a key of its owner's account: the operator's own
 * keys do not pay for it.
 *
 * @param model as the provider names it; its own prefix may stand before it.
 * @throws Refusal `invalid` when the account has no key for that provider.
 */
export async function openProcessor(
  backend: { postgres: Postgres; seal: Seal; config: Config },
  { account, provider }: Pick<OrgPolicy, 'account' | 'provider'>,
  model: string,
): Promise<ProcessorModel> {
  if (!isProviderName(provider)) throw new Refusal('invalid', `No such provider: ${provider}`)
  const keys = await openProviderKeys(backend, account)
  const settings = backend.config.providers[provider] ?? {}
  const apiKey = keys[provider] ?? ''
  if (!apiKey && !(isSelfHosted(provider) && settings.baseUrl)) {
    throw new Refusal(
      'invalid',
      `The owner of the organization has no key for ${provider}`,
      `PUT /v1/account/provider-keys/${provider} stores one; then take the job up again`,
    )
  }
  const name = model.startsWith(`${provider}/`) ? model.slice(provider.length + 1) : model
  const baseUrl = settings.baseUrl ?? providers[provider].baseUrl
  return {
    model: `${provider}/${name}`,
    answeringModel: openCompletionModel({ provider, name, apiKey, baseUrl }),
  }
}
