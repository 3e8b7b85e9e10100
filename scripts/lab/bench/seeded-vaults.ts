import { createBenchKey, openBenchService } from '#scripts/lab/bench/bench-environment.ts'
import { startEmbeddingDouble, vectorForText } from '#scripts/lab/bench/embedding-double.ts'
import { fillVault } from '#scripts/lab/bench/fill-vault.ts'
import type { Config } from '#shared/core/config.ts'

type SeedOptions = {
  /** Memories of each vault. */
  sizes: readonly number[]
  /** The vectors' length; a double of an embedding model makes them from the texts. */
  dimension: number
  /** Milliseconds between two memories; the last one is now. Default one minute. */
  step?: number
  /** Receives the vector of each memory, in order. */
  onVector?: (vector: Float32Array) => void
}

/** The ids of its memories, in order. */
export type SeededVault = { key: string; ids: string[] }

/** Databases with filled vaults, each of an account of its own, before any process was started. */
export type SeededVaults = {
  env: Record<string, string>
  config: Config
  /** Name of the vectors in the documents. */
  space: string
  vaults: SeededVault[]
  /** Ends the double that a running process asks for vectors. */
  close(): void
}

/** New databases with a vault of each size, of memories of 30 words. */
export async function seedVaults({
  sizes,
  dimension,
  step = 60_000,
  onVector,
}: SeedOptions): Promise<SeededVaults> {
  const double = await startEmbeddingDouble(dimension)
  const { env, config, backend } = await openBenchService({
    EMBEDDINGS: 'openai/bench',
    OPENAI_BASE_URL: double.baseUrl,
    OPENAI_API_KEY: 'none',
  })
  const embed = (text: string): Float32Array => {
    const vector = vectorForText(text, dimension)
    onVector?.(vector)
    return vector
  }
  const vaults: SeededVault[] = []
  for (const count of sizes) {
    const key = await createBenchKey(backend, config)
    const options = { count, words: 30, seed: count, from: Date.now() - count * step, step }
    const embedTexts = async (texts: string[]): Promise<Float32Array[]> => texts.map(embed)
    vaults.push({ key, ids: await fillVault(backend, key, { ...options, embedTexts }) })
  }
  const { space } = await backend.embedders.get()
  await backend.close()
  return { env, config, space, vaults, close: double.close }
}
