import { randomSentence } from '#scripts/lab/bench/bench-environment.ts'
import { seededRandom } from '#scripts/lab/bench/generated-vectors.ts'
import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { authenticateMemoryKey, extractMemoryKey, type Caller } from '#shared/access/caller.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'

/** The memories of a filled vault. */
export type FillOptions = {
  count: number
  /** Words of each text. */
  words: number
  /** Seed of the texts. */
  seed: number
  /** Time of the first memory, epoch milliseconds. */
  from: number
  /** Milliseconds between two memories. */
  step: number
  /** The texts, one after the other and then again; random ones of so many words when missing. */
  texts?: readonly string[]
  embedTexts: (texts: string[]) => Promise<readonly Float32Array[]>
}

const batchSize = 5_000

/** The caller that a key authenticates. */
export const resolveCaller = (backend: Backend, key: string): Promise<Caller> =>
  authenticateMemoryKey(
    backend.findKey,
    backend.config.keyPepper,
    extractMemoryKey({ memoryKey: key, authorization: undefined, apiKey: undefined }),
  )

/**
 * Stores raw memories in the core vault of a key, in the form in which workers store them.
 *
 * @returns their ids, in order.
 */
export async function fillVault(
  backend: Backend,
  key: string,
  { count, words, seed, from, step, texts: given, embedTexts }: FillOptions,
): Promise<string[]> {
  const ids: string[] = []
  const { scope } = await resolveCaller(backend, key)
  const { space } = await backend.embedders.get()
  const next = seededRandom(seed)
  for (let start = 0; start < count; start += batchSize) {
    const operation = mintId()
    const texts = Array.from(
      { length: Math.min(batchSize, count - start) },
      (_, index) => given?.[(start + index) % given.length] ?? randomSentence(words, next),
    )
    const vectors = await embedTexts(texts)
    const rows = texts.map((text, index) => ({
      id: memoryIdOf(operation, index),
      tier: 1 as const,
      role: 'user' as const,
      text,
      at: from + (start + index) * step,
      tokens: countTokens(text),
      vault: scope.vault,
      epoch: scope.epoch,
      session: null,
      sessionEpoch: 0,
      operation,
      vector: vectors[index]!,
    }))
    await backend.memories.add(rows, space)
    const stored = rows.map(({ id }) => id)
    ids.push(...stored)
    const rawTokens = rows.reduce((sum, { tokens }) => sum + tokens, 0)
    await changeVault(backend.postgres, scope.vault, [{ session: null, stored }], {
      rawUnits: rows.length,
      rawTokens,
    })
  }
  return ids
}
