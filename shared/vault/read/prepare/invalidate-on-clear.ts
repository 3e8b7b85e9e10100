import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { clearedChannel } from '#shared/vault/base/erasures.postgres.ts'
import type { ProfileSource } from '#shared/vault/read/prepare/profile-cache.ts'
import type { IndexSource } from '#shared/search/index/vault-indexes.ts'

/**
 * Subscribes a process to the notification of cleared vaults before it loads its first index, so that deleted
 * memories leave its memory at once. A lost notification only delays that: an index of an earlier epoch never
 * answers.
 */
export function invalidateOnClear(
  source: IndexSource,
  postgres: Postgres,
  onCleared: (vault: string) => void,
): {
  source: IndexSource
  /** A source of profiles that subscribes, too. */
  subscribing(profiles: ProfileSource): ProfileSource
  close(): Promise<void>
} {
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
      async saved(ref) {
        await subscribe()
        return source.saved?.(ref)
      },
    },
    subscribing: profiles => ({
      ...profiles,
      async load(ref, statementsMax) {
        await subscribe()
        return profiles.load(ref, statementsMax)
      },
    }),
    async close() {
      await (await subscription)?.close()
    },
  }
}
