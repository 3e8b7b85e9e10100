import families from '#shared/models/model-families.json' with { type: 'json' }
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { reachableProviders, type ModelCatalog } from '#shared/models/model-catalog.ts'
import {
  providerOfKey,
  providersWithFormat,
  servesFormat,
  splitModelName,
  type ApiFormat,
  type BuiltInName,
  type Providers,
} from '#shared/core/provider-registry.ts'

/** `name` is the provider's name of the model. */
export type ModelRef = { provider: string; name: string }

export const prefixedName = ({ provider, name }: ModelRef): string => `${provider}/${name}`

/**
 * Name patterns of one provider only. Names with a tag (`mistral-nemo:12b`) are of models that people run themselves;
 * gpt-oss and distilled models are offered by many.
 */
const modelFamilies = families.map(
  ({ pattern, maker }) => [new RegExp(pattern), maker as BuiltInName] as const,
)

/** A model's name for billing, with its provider where the name shows it. */
export function qualifiedName(name: string): string {
  const maker = makerOf(name)
  return maker ? prefixedName({ provider: maker, name }) : name
}

const modelNamePattern = /^[\x21-\x7E]{1,200}$/

/**
 * Resolves the name of a request's model: by its provider, its family, a format of only one provider, or the lists of
 * the account's providers.
 *
 * @param loadKeys the account's provider keys, read only when the lists are needed
 * @throws Refusal `invalid` when no provider is known for it, or its provider does not support the format.
 */
export async function resolveModel(
  {
    catalog,
    config,
  }: { catalog: Pick<ModelCatalog, 'modelLists'>; config: Pick<Config, 'providers'> },
  requestedName: string,
  format: ApiFormat,
  loadKeys: () => Promise<ReadonlyMap<string, string>>,
): Promise<ModelRef> {
  const { providers } = config
  if (!modelNamePattern.test(requestedName)) {
    throw new Refusal(
      'invalid',
      'model must be 1 to 200 printable ASCII characters',
      prefixHint(providers),
    )
  }
  const model =
    matchByName(requestedName, providers) ?? soleProviderOfFormat(requestedName, format, providers)
  if (model) return requireFormat(model, format, providers)
  const keys = await loadKeys()
  const { lists } = await catalog
    .modelLists(reachableProviders(config, keys))
    .catch(() => ({ lists: [] }))
  const matchingLists = lists.filter(({ models }) => models.includes(requestedName))
  // The operator's keys list models, but do not pay for calls.
  const paidByAccount = matchingLists.filter(({ provider }) => keys.has(provider))
  const [listed, ...others] = paidByAccount.length > 0 ? paidByAccount : matchingLists
  if (!listed) {
    throw new Refusal(
      'invalid',
      `No provider is known for the model ${truncateName(requestedName)}`,
      prefixHint(providers),
    )
  }
  // A wrong guess would send a conversation to a company that the client did not choose.
  if (others.length > 0) {
    const names = [listed, ...others].map(({ provider }) =>
      truncateName(`${provider}/${requestedName}`),
    )
    throw new Refusal(
      'invalid',
      `Several providers have the model ${truncateName(requestedName)}`,
      `Say which: ${names.join(', ')}`,
    )
  }
  return requireFormat({ provider: listed.provider, name: requestedName }, format, providers)
}

const prefixHint = (providers: Providers): string =>
  `Name it with its provider, <provider>/<model>: ${[...providers.keys()].join(', ')}; GET /v1/models lists what is reached`

function matchByName(requestedName: string, providers: Providers): ModelRef | undefined {
  const prefixed = splitModelName(providers, requestedName)
  if (prefixed) return { provider: prefixed.provider.name, name: prefixed.name }
  const maker = makerOf(requestedName)
  return maker && { provider: maker, name: requestedName }
}

/** A name with a slash is a host's name for the model of another maker: `deepseek-ai/…`, `grok-proxy/…`. */
const makerOf = (name: string): BuiltInName | undefined =>
  name.includes('/') ? undefined : modelFamilies.find(([family]) => family.test(name))?.[1]

function soleProviderOfFormat(
  requestedName: string,
  format: ApiFormat,
  providers: Providers,
): ModelRef | undefined {
  const [provider, ...others] = providersWithFormat(providers, format)
  return provider && others.length === 0 ? { provider, name: requestedName } : undefined
}

const endpointPaths: Record<ApiFormat, string> = {
  openai: '/v1/chat/completions',
  anthropic: '/v1/messages',
  google: '/v1/models/:model:generateContent',
  responses: '/v1/responses',
}

function requireFormat(model: ModelRef, format: ApiFormat, providers: Providers): ModelRef {
  const provider = providers.get(model.provider)
  if (provider && servesFormat(provider, format)) return model
  const speakers = providersWithFormat(providers, format)
  throw new Refusal(
    'invalid',
    `${model.provider} does not speak this format`,
    `${endpointPaths[format]} is for ${speakers.join(', ')}; send ${truncateName(prefixedName(model))} to ${endpointPaths.openai}`,
  )
}

const truncateName = (name: string): string => name.slice(0, 64)

/** @throws Refusal `invalid` for a key in the form of another provider, before it is sent to the wrong one. */
export function requireKeyForm(provider: string, key: string): void {
  const owner = providerOfKey(key)
  if (owner === undefined || owner === provider) return
  throw refusal('invalid', 'otherProvidersKey', { owner, provider })
}
