import { random, sentence, unitVector } from '#scripts/bench/vault.ts'
import type { Backend } from '#shared/backend.ts'
import { memoryIdOf, mintId } from '#shared/ids.ts'
import { callerOfKey, presentedKey, type Caller } from '#shared/key/caller.ts'
import { changeVault } from '#shared/postgres/vaults.ts'
import { tokensOf } from '#shared/tokens.ts'

/** What the memories of a filled vault are: a minute apart, with vectors that mean nothing. */
export type Filling = {
  count: number
  /** Of each text. */
  words: number
  /** Tells fillings apart. */
  seed: number
  /** Epoch milliseconds of the first. */
  from: number
}

const batch = 5_000

/** Who a key is. */
export const callerOf = (backend: Backend, key: string): Promise<Caller> =>
  callerOfKey(
    backend.findKey,
    backend.config.keyPepper,
    presentedKey({ memoryKey: key, authorization: undefined, apiKey: undefined }),
  )

/** Puts raw memories straight into the core vault of a key, as workers leave them. */
export async function fill(
  backend: Backend,
  key: string,
  { count, words, seed, from }: Filling,
): Promise<void> {
  const { scope } = await callerOf(backend, key)
  const { space, dimension } = await backend.embedders.get()
  const next = random(seed)
  for (let start = 0; start < count; start += batch) {
    const operation = mintId()
    const rows = Array.from({ length: Math.min(batch, count - start) }, (_, index) => {
      const text = sentence(words, next)
      return {
        id: memoryIdOf(operation, index),
        tier: 1 as const,
        role: 'user' as const,
        text,
        at: from + (start + index) * 60_000,
        tokens: tokensOf(text),
        vault: scope.vault,
        epoch: scope.epoch,
        session: null,
        sessionEpoch: 0,
        operation,
        vector: unitVector(dimension, next),
      }
    })
    await backend.memories.add(rows, space)
    const stored = rows.map(({ id }) => id)
    const rawTokens = rows.reduce((sum, { tokens }) => sum + tokens, 0)
    await changeVault(backend.postgres, scope.vault, [{ session: null, stored }], {
      rawUnits: rows.length,
      rawTokens,
    })
  }
}
