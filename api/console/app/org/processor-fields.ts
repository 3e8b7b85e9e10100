import { call, filled } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { checkboxField, selectField, textField, useFields } from '#api/console/app/parts/fields.ts'
import { useCall } from '#api/console/app/queries.ts'
import type { ListProviderKeysAnswer, Organization } from '#api/contract/generated/types.ts'

type Settings = Pick<Organization, 'processor_provider' | 'extract_model' | 'classify_model'>

/**
 * The fields of what an organization is processed by: provider, models, and the key of the account for that provider.
 *
 * @param saved undefined for a new organization, which begins with what the service would choose
 */
export function useProcessor(saved?: Settings): {
  view: View
  /** For a request that creates or changes the organization. */
  body: Partial<Settings>
  /** Tries the models and stores the key, where one is given or anything has changed. */
  prepare: () => Promise<void>
} {
  const { answer } = useCall('GET /v1/account/provider-keys')
  const { fields, set, of } = useFields({
    provider: saved?.processor_provider ?? '',
    extract: saved?.extract_model ?? '',
    classify: saved?.classify_model ?? '',
    key: '',
    isTried: true,
  })
  const provider = fields.provider || usualProvider(answer)
  const usual = answer?.processors.find(one => one.provider === provider)
  const stored = answer?.provider_keys.find(one => one.provider === provider)
  const extract = fields.extract.trim() || usual?.extract_model || ''
  const classify = fields.classify.trim() || usual?.classify_model || ''
  const key = fields.key.trim()
  const isChanged =
    key !== '' ||
    provider !== saved?.processor_provider ||
    extract !== saved.extract_model ||
    classify !== saved.classify_model

  const prepare = async (): Promise<void> => {
    const params = { provider }
    const models = [extract, classify].filter(model => model !== '')
    if (fields.isTried && isChanged && models.length > 0) {
      const body = { models, ...filled({ key }) }
      await call('POST /v1/account/provider-keys/:provider/check', { params, body })
    }
    if (key) await call('PUT /v1/account/provider-keys/:provider', { params, body: { key } })
  }
  const modelField = (label: string, name: 'extract' | 'classify', usual?: string | null): View =>
    textField({
      label,
      ...of(name),
      maxlength: 256,
      required: !usual,
      ...(usual && { placeholder: usual }),
    })
  const view = html`${selectField({
    label: 'Provider',
    value: provider,
    onValue: chosen => set({ provider: chosen, extract: '', classify: '', key: '' }),
    choices: [...new Set([provider, ...(answer?.providers ?? [])])].map(
      each => [each, each] as const,
    ),
    hint: 'Its models read what members say and decide what is shared.',
  })}
  ${modelField('Model that finds facts', 'extract', usual?.extract_model)}
  ${modelField('Model that tags and compares', 'classify', usual?.classify_model)}
  ${
    usual?.needs_key &&
    textField({
      label: `Key for ${provider}`,
      type: 'password',
      ...of('key'),
      maxlength: 1024,
      autocomplete: 'off',
      hint: stored
        ? `The account has ${stored.masked_key}; another takes its place for the whole account.`
        : 'The account has none, and without it nothing is shared. It is stored for the whole account.',
    })
  }
  ${checkboxField({
    label: 'Try the models first',
    ...of('isTried'),
    hint: 'One call each, of a few tokens.',
  })}`
  const body = filled({
    processor_provider: provider,
    extract_model: extract,
    classify_model: classify,
  })
  return { view, body, prepare }
}

/** The provider that the service takes for an organization that names none. */
const usualProvider = (answer: ListProviderKeysAnswer | undefined): string =>
  answer?.processors.find(
    one =>
      one.extract_model !== null &&
      answer.provider_keys.some(({ provider }) => provider === one.provider),
  )?.provider ?? 'openai'
