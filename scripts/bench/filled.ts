import { random, sentence, unitVector } from '#scripts/bench/vault.ts'
import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/core/ids.ts'
import { callerOfKey, presentedKey, type Caller } from '#shared/access/caller.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { tokensOf } from '#shared/core/tokens.ts'

/** What the memories of a filled vault are. */
export type Filling = {
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
  vectorsOf?: (texts: string[]) => Promise<readonly Float32Array[]>
}

const batch = 5_000

/** Who a key is. */
export const callerOf = (backend: Backend, key: string): Promise<Caller> =>
  callerOfKey(
    backend.findKey,
    backend.config.keyPepper,
    presentedKey({ memoryKey: key, authorization: undefined, apiKey: undefined }),
  )

/**
 * Puts raw memories straight into the core vault of a key, as workers leave them.
 *
 * @returns their ids, in order.
 */
export async function fill(
  backend: Backend,
  key: string,
  { count, words, seed, from, step = 60_000, vectorsOf }: Filling,
): Promise<string[]> {
  const ids: string[] = []
  const { scope } = await callerOf(backend, key)
  const { space, dimension } = await backend.embedders.get()
  const next = random(seed)
  for (let start = 0; start < count; start += batch) {
    const operation = mintId()
    const texts = Array.from({ length: Math.min(batch, count - start) }, () =>
      sentence(words, next),
    )
    const vectors = await vectorsOf?.(texts)
    const rows = texts.map((text, index) => ({
      id: memoryIdOf(operation, index),
      tier: 1 as const,
      role: 'user' as const,
      text,
      at: from + (start + index) * step,
      tokens: tokensOf(text),
      vault: scope.vault,
      epoch: scope.epoch,
      session: null,
      sessionEpoch: 0,
      operation,
      vector: vectors?.[index] ?? unitVector(dimension, next),
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
