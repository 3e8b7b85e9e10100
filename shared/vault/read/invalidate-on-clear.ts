import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { clearedChannel } from '#shared/vault/base/erasures.postgres.ts'
import type { IndexSource } from '#shared/search/index/vault-indexes.ts'

export type InvalidatingSource = { source: IndexSource; close(): Promise<void> }

/**
 * Lets a process hear which vaults were cleared, from before it loads its first image: what was deleted
 * leaves its memory then, and not only when somebody asks for that vault again. A notification that is
 * lost costs no more than that: images of an earlier epoch are never shown.
 */
export function invalidateOnClear(
  source: IndexSource,
  postgres: Postgres,
  onCleared: (vault: string) => void,
): InvalidatingSource {
  let subscription: Promise<{ close(): Promise<void> }> | null = null

  const subscribe = (): Promise<unknown> => {
    subscription ??= postgres.listen(clearedChannel, onCleared)
    return subscription.catch(() => (subscription = null))
  }

  return {
    source: {
      ...source,
      async load(ref, onBatch) {
        await subscribe()
        await source.load(ref, onBatch)
      },
    },
    async close() {
      await (await subscription)?.close()
    },
  }
}
