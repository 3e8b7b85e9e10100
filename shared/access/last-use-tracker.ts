import type { Log } from '#shared/core/log.ts'
import { recordKeyUse } from '#shared/access/member-keys.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type LastUseTracker = {
  /** Records in memory that a key was used now. */
  touch(hash: Buffer): void
  /** Writes the recorded uses. A use that cannot be written is lost until the key's next use. */
  flush(): Promise<void>
}

/** Delay of a write. */
const writeDelayMs = 5_000

/** Collects uses of keys, so that a busy key costs one write a minute and not one per request. */
export function createLastUseTracker(query: Query, log: Log): LastUseTracker {
  let pendingUses = new Map<string, Buffer>()
  let timer: NodeJS.Timeout | null = null

  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer)
    timer = null
    const hashes = [...pendingUses.values()]
    pendingUses = new Map()
    if (hashes.length === 0) return
    await recordKeyUse(query, hashes).catch((error: unknown) =>
      log.warn({ err: error, keys: hashes.length }, 'keys.use-unwritten'),
    )
  }

  return {
    touch(hash) {
      pendingUses.set(hash.toString('base64'), hash)
      timer ??= setTimeout(() => void flush(), writeDelayMs).unref()
    },
    flush,
  }
}
