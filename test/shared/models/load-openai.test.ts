import { registerHooks } from 'node:module'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { startEmbeddingProvider } from '#test/support/embedding-provider.ts'

const modules = { loaded: 0, areLoading: true }
const hooks = registerHooks({
  // Modules of its own: other files of this process may have loaded them.
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const isFresh = /\/(?:shared\/models|node_modules\/openai)\//.test(found.url)
    return isFresh ? { ...found, url: `${found.url}?fresh` } : found
  },
  load(url, context, next) {
    if (/\/openai[/-]/.test(url)) modules.loaded++
    return next(url, context)
  },
})
t.teardown(() => hooks.deregister())
const { createEmbedders } = await import('#shared/models/embedders.ts')

t.test('what the default model needs is loaded in parts, before its first use', async t => {
  await createEmbedders({ embeddingModel: 'local', providers: {} }).load()
  t.equal(modules.loaded, 0, 'an offline service needs nothing')

  const { baseUrl, calls } = await startEmbeddingProvider(t)
  const embeddingModel = 'openai/text-embedding-3-small'
  const providers = { openai: { baseUrl, apiKey: 'none' } }
  const embedders = createEmbedders({ embeddingModel, providers })
  const loading = embedders.load()
  const loadedByTurn: number[] = []
  void loading.finally(() => (modules.areLoading = false))
  for (let before = 0; modules.areLoading; before = modules.loaded) {
    await nextTurn()
    loadedByTurn.push(modules.loaded - before)
  }
  await loading
  const { loaded } = modules
  t.ok(loaded > 100, 'all of the SDK')
  t.ok(Math.max(...loadedByTurn) < loaded / 3, 'and never much of it in one turn')
  t.same(calls, [], 'the provider is not asked')

  t.equal((await embedders.get()).dimension, 64)
  t.equal(modules.loaded, loaded, 'the first use loads nothing')
})
