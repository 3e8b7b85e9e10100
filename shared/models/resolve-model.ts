import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { reachable, type Catalog } from '#shared/models/catalog.ts'
import {
  providerNames,
  speakersOf,
  type Format,
  type ProviderName,
} from '#shared/core/provider-registry.ts'

/** A model as its provider names it. */
export type Model = { provider: ProviderName; name: string }

/** How people name it: with its provider. */
export const prefixed = ({ provider, name }: Model): string => `${provider}/${name}`

/** Names that only their makers give: they are known without asking anybody. */
const families: [RegExp, ProviderName][] = [
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'google'],
  // gpt-oss runs anywhere but at its maker's.
  [/^(?:gpt-(?!oss)|chatgpt-|o\d)/, 'openai'],
  [/^(?:whisper-1|tts-1|dall-e-|text-embedding-(?:3-|ada))/, 'openai'],
  [/^grok-/, 'xai'],
  [/^deepseek-(?:chat|reasoner)$/, 'deepseek'],
]

/** A model's name for the books: with its provider where the name itself tells it, else as it stands. */
export function qualifiedName(name: string): string {
  const model = byName(name)
  return model ? prefixed(model) : name
}

const nameGrammar = /^[\x21-\x7E]{1,200}$/

/**
 * The model that a name in a request means: by its provider, by its family, by the models that the
 * account's providers list, or in a format that only one provider speaks as one of that provider's.
 * Only a name that says nothing costs a look into the catalogue.
 *
 * @param keysOf the account's provider keys, read only when the catalogue is needed
 * @throws Refusal `invalid` when no provider is known for it, or its provider does not speak the format.
 */
export async function resolveModel(
  { catalog, config }: { catalog: Catalog; config: Pick<Config, 'providers'> },
  asked: string,
  format: Format,
  keysOf: () => Promise<Partial<Record<ProviderName, string>>>,
): Promise<Model> {
  if (!nameGrammar.test(asked)) {
    throw new Refusal('invalid', 'model must be 1 to 200 printable ASCII characters', prefixHint)
  }
  const model = byName(asked) ?? onlySpeaker(asked, format)
  if (model) return speaking(model, format)
  const keys = await keysOf()
  const { lists } = await catalog.modelsOf(reachable(config, keys)).catch(() => ({ lists: [] }))
  const having = lists.filter(({ models }) => models.includes(asked))
  // The operator's keys list models too, but do not pay for them.
  const own = having.filter(({ provider }) => keys[provider] !== undefined)
  const [listed, ...others] = own.length > 0 ? own : having
  if (!listed) {
    throw new Refusal('invalid', `No provider is known for the model ${shown(asked)}`, prefixHint)
  }
  // Whoever guesses here sends a conversation to a company that nobody chose.
  if (others.length > 0) {
    const names = [listed, ...others].map(({ provider }) => shown(`${provider}/${asked}`))
    throw new Refusal(
      'invalid',
      `Several providers have the model ${shown(asked)}`,
      `Say which: ${names.join(', ')}`,
    )
  }
  return speaking({ provider: listed.provider, name: asked }, format)
}

const prefixHint = `Name it with its provider, <provider>/<model>: ${providerNames.join(', ')}; GET /v1/models lists what is reached`

function byName(asked: string): Model | undefined {
  const slash = asked.indexOf('/')
  const named = providerNames.find(name => name === asked.slice(0, slash))
  if (named && slash + 1 < asked.length) return { provider: named, name: asked.slice(slash + 1) }
  const maker = families.find(([family]) => family.test(asked))
  return maker && { provider: maker[1], name: asked }
}

function onlySpeaker(asked: string, format: Format): Model | undefined {
  const [provider, ...others] = speakersOf(format)
  return provider && others.length === 0 ? { provider, name: asked } : undefined
}

const paths: Record<Format, string> = {
  openai: '/v1/chat/completions',
  anthropic: '/v1/messages',
  google: '/v1/models/:model:generateContent',
}

function speaking(model: Model, format: Format): Model {
  const speakers = speakersOf(format)
  if (speakers.includes(model.provider)) return model
  throw new Refusal(
    'invalid',
    `${model.provider} does not speak this format`,
    `${paths[format]} is for ${speakers.join(', ')}; send ${shown(prefixed(model))} to ${paths.openai}`,
  )
}

const shown = (name: string): string => name.slice(0, 64)
