import t from 'tap'
import type { ModelCatalog } from '#shared/models/model-catalog.ts'
import { prefixedName, qualifiedName, resolveModel } from '#shared/models/resolve-model.ts'
import { builtInNames, type ApiFormat } from '#shared/core/provider-registry.ts'
import { providersOf } from '#test/support/start/providers.ts'

/** What providers list, and how often anybody looked. */
function catalogOf(lists: Record<string, string[]>) {
  const looks: string[][] = []
  const catalog: Pick<ModelCatalog, 'modelLists'> = {
    modelLists(providers) {
      looks.push(providers.map(({ provider }) => provider.name))
      const known = providers.flatMap(({ provider: { name } }) => {
        const models = lists[name]
        return models ? [{ provider: name, models }] : []
      })
      return Promise.resolve({ lists: known, updatedAt: 0 })
    },
  }
  return { catalog, looks }
}

const { catalog, looks } = catalogOf({
  together: ['meta-llama/Llama-4', 'shared-model'],
  groq: ['shared-model', 'gpt-oss-120b', 'operators-model'],
  mistral: ['operators-model', 'only-operators'],
})
const config = { providers: providersOf({ MISTRAL_API_KEY: 'of the operator' }) }
const loadKeys = () =>
  Promise.resolve(
    new Map([
      ['together', 'a'],
      ['groq', 'b'],
    ]),
  )

const resolved = async (model: string, format: ApiFormat = 'openai', of = config) =>
  prefixedName(await resolveModel({ catalog, config: of }, model, format, loadKeys))

t.test('every provider by its prefix, the rest of the name as it is', async t => {
  for (const provider of builtInNames)
    t.equal(await resolved(`${provider}/some/model:tag`), `${provider}/some/model:tag`)
  t.equal(await resolved('openrouter/openrouter/auto'), 'openrouter/openrouter/auto')
  t.same(looks, [], 'nobody was asked')
})

t.test('names that only their makers give, without asking anybody', async t => {
  const makers = {
    openai: `gpt-5.1-mini chatgpt-4o-latest o4-mini whisper-1 text-embedding-3-small codex-mini-latest
      omni-moderation-latest ft:gpt-4o-mini:acme::abc`,
    anthropic: 'claude-sonnet-4-5',
    google: 'gemini-2.5-flash imagen-4.0-generate-001 text-embedding-004',
    xai: 'grok-4',
    deepseek: 'deepseek-chat deepseek-v3.2',
    mistral: 'mistral-large-latest codestral-2508 open-mixtral-8x22b ft:mistral-small-latest:x:y',
  }
  for (const [maker, models] of Object.entries(makers))
    for (const model of models.split(/\s+/)) t.equal(await resolved(model), `${maker}/${model}`)
  t.same(looks, [])
})

t.test('other names by the catalogue; the account’s own keys before the operator’s', async t => {
  t.equal(await resolved('meta-llama/Llama-4'), 'together/meta-llama/Llama-4')
  t.equal(await resolved('gpt-oss-120b'), 'groq/gpt-oss-120b')
  t.equal(await resolved('operators-model'), 'groq/operators-model')
  t.equal(await resolved('only-operators'), 'mistral/only-operators')
  t.same(looks[0], ['mistral', 'groq', 'together'], 'nobody without a key is asked')
})

t.test(
  'a provider of the operator’s own by its prefix; a name with a slash is of no maker',
  async t => {
    const providers = providersOf({
      PROVIDERS: 'grok-proxy',
      GROK_PROXY_BASE_URL: 'http://grok/v1',
    })
    t.equal(await resolved('grok-proxy/m', 'openai', { providers }), 'grok-proxy/m')
    t.equal(await resolved('grok-proxy/m', 'responses', { providers }), 'grok-proxy/m')
    t.equal(qualifiedName('grok-proxy/m'), 'grok-proxy/m')
    await t.rejects(resolved('grok-proxy/m'), { message: /No provider is known/ })
  },
)

t.test('names that many providers give are not guessed', async t => {
  for (const model of ['deepseek-r1-distill-llama-70b', 'mistral-nemo:12b', 'deepseek-r1:14b'])
    await t.rejects(resolved(model), { message: /No provider is known/ }, model)
})

t.test('invalid: unknown, ambiguous or no name', async t => {
  const hint = /<provider>\/<model>: openai, anthropic/
  const refused = (message: RegExp, hint: RegExp) => ({ reason: 'invalid', message, hint })
  await t.rejects(resolved('nobody-has-it'), refused(/No provider is known for/, hint))
  await t.rejects(
    resolved('shared-model'),
    refused(/Several providers/, /groq\/shared-model, together\/shared-model/),
  )
  await t.rejects(resolved('openai/'), refused(/No provider is known/, hint))
  for (const name of ['', ' gpt-5', 'gpt 5', 'modèle', 'x'.repeat(201), 'a\nb'])
    await t.rejects(resolved(name), refused(/printable ASCII/, hint))
  const down: Pick<ModelCatalog, 'modelLists'> = {
    modelLists: () => Promise.reject(new Error('down')),
  }
  await t.rejects(
    resolveModel({ catalog: down, config }, 'x', 'openai', () => Promise.resolve(new Map())),
    refused(/No provider is known/, hint),
  )
})

t.test('a format that one provider speaks takes any name of its own models alone', async t => {
  t.equal(await resolved('my-tuned-model', 'anthropic'), 'anthropic/my-tuned-model')
  t.equal(await resolved('anthropic/claude-x', 'anthropic'), 'anthropic/claude-x')
  t.equal(await resolved('tuned', 'google'), 'google/tuned')
  await t.rejects(resolved('gpt-5', 'anthropic'), {
    reason: 'invalid',
    message: 'openai does not speak this format',
    hint: /\/v1\/messages is for anthropic; send openai\/gpt-5 to \/v1\/chat\/completions/,
  })
  await t.rejects(resolved('openrouter/x', 'google'), {
    reason: 'invalid',
    message: /openrouter/,
  })
})
