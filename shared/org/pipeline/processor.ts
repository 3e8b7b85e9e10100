import { Refusal } from '#shared/core/errors.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import { openCompletionModel } from '#shared/models/completion.ts'
import { lacksAddress } from '#shared/core/provider-registry.ts'
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
  { account, provider: providerName }: Pick<OrgPolicy, 'account' | 'provider'>,
  model: string,
): Promise<ProcessorModel> {
  const provider = backend.config.providers.get(providerName)
  if (!provider) throw new Refusal('invalid', `No such provider: ${providerName}`)
  const apiKey = (await openProviderKeys(backend, account)).get(providerName) ?? ''
  if (!apiKey && !(provider.selfHosted && !lacksAddress(provider))) {
    throw new Refusal(
      'invalid',
      `The owner of the organization has no key for ${providerName}`,
      `PUT /v1/account/provider-keys/${providerName} stores one; then take the job up again`,
    )
  }
  const prefix = `${providerName}/`
  const name = model.startsWith(prefix) ? model.slice(prefix.length) : model
  return {
    model: prefix + name,
    answeringModel: openCompletionModel({ provider, name, apiKey }),
  }
}
