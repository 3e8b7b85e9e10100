import { seededRandom, randomSentence, randomUnitVector } from '#scripts/bench/bench-environment.ts'
import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { authenticateMemoryKey, extractMemoryKey, type Caller } from '#shared/access/caller.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { countTokens } from '#shared/core/tokens.ts'

/** What the memories of a filled vault are. */
export type FillOptions = {
  count: number
  /** Of each text. */
  words: number
  /** Tells fillings apart. */
  seed: number
  /** Epoch milliseconds of the first. */
  from: number
  /** Milliseconds from one to the next: a minute. */
  step?: number
  /** Of some texts; vectors that mean nothing, when missing. */
  embedTexts?: (texts: string[]) => Promise<readonly Float32Array[]>
}

const batchSize = 5_000

/** Who a key is. */
export const resolveCaller = (backend: Backend, key: string): Promise<Caller> =>
  authenticateMemoryKey(
    backend.findKey,
    backend.config.keyPepper,
    extractMemoryKey({ memoryKey: key, authorization: undefined, apiKey: undefined }),
  )

/**
 * Puts raw memories straight into the core vault of a key, as workers leave them.
 *
 * @returns their ids, in order.
 */
export async function fillVault(
  backend: Backend,
  key: string,
  { count, words, seed, from, step = 60_000, embedTexts }: FillOptions,
): Promise<string[]> {
  const ids: string[] = []
  const { scope } = await resolveCaller(backend, key)
  const { space, dimension } = await backend.embedders.get()
  const next = seededRandom(seed)
  for (let start = 0; start < count; start += batchSize) {
    const operation = mintId()
    const texts = Array.from({ length: Math.min(batchSize, count - start) }, () =>
      randomSentence(words, next),
    )
    const vectors = await embedTexts?.(texts)
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
      vector: vectors?.[index] ?? randomUnitVector(dimension, next),
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
