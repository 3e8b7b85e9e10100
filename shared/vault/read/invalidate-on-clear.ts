import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { clearedChannel } from '#shared/vault/base/erasures.postgres.ts'
import type { ImageSource } from '#shared/search/index/vault-indexes.ts'

export type HearingSource = { source: ImageSource; close(): Promise<void> }

/**
 * Lets a process hear which vaults were cleared, from before it loads its first image: what was deleted
 * leaves its memory then, and not only when somebody asks for that vault again. A notification that is
 * lost costs no more than that: images of an earlier epoch are never shown.
 */
export function hearingClearings(
  source: ImageSource,
  postgres: Postgres,
  onCleared: (vault: string) => void,
): HearingSource {
  let listening: Promise<{ close(): Promise<void> }> | null = null

  const listen = (): Promise<unknown> => {
    listening ??= postgres.listen(clearedChannel, onCleared)
    return listening.catch(() => (listening = null))
  }

  return {
    source: {
      ...source,
      async load(ref, onBatch) {
        await listen()
        await source.load(ref, onBatch)
      },
    },
    async close() {
      await (await listening)?.close()
    },
  }
}
