import { resolveCaller, fillVault, type FillOptions } from '#scripts/lab/bench/fill-vault.ts'
import {
  createBenchEnvironment,
  createBenchKey,
  log,
} from '#scripts/lab/bench/bench-environment.ts'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import { openBackend } from '#shared/backend.ts'
import { readConfig } from '#shared/core/config.ts'
import { serviceActor } from '#shared/events/account-events.postgres.ts'

const stepMs = 600_000

type FilledWith = Pick<FillOptions, 'count'> & Partial<FillOptions>

/**
 * The environment of a service before this model, and a function that returns a key with so many memories and a stored
 * provider key.
 */
export async function setUpProxy(modelPort: number): Promise<{
  env: Record<string, string>
  createKey(filled: FilledWith): Promise<string>
}> {
  const env = await createBenchEnvironment({ OPENAI_BASE_URL: `http://127.0.0.1:${modelPort}/v1` })
  const config = readConfig(env)
  const createKey = async (filled: FilledWith): Promise<string> => {
    const backend = await openBackend(config, log, 'web')
    const key = await createBenchKey(backend, config)
    const { account } = await resolveCaller(backend, key)
    await storeProviderKey(
      { query: backend.postgres.query, seal: backend.seal },
      { account, actor: serviceActor },
      'openai',
      'sk-of-the-benchmark',
    )
    const embedder = await backend.embedders.get()
    await fillVault(backend, key, {
      words: 30,
      seed: 4,
      from: Date.now() - filled.count * stepMs,
      step: stepMs,
      embedTexts: texts => embedder.embedTexts(texts),
      ...filled,
    })
    await backend.close()
    return key
  }
  return { env, createKey }
}
