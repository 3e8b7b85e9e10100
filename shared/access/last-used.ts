import type { Log } from '#shared/core/log.ts'
import { noteUse } from '#shared/access/member-keys.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type LastUsed = {
  /** Notes that a key was used just now; costs nothing. */
  touch(hash: Buffer): void
  /** Writes what was noted. What cannot be written is noted again with the next use. */
  flush(): Promise<void>
}

/** How late a use is written. */
const delayMs = 5_000

/** Gathers uses of keys, so that a busy key is one write in a minute and not one per request. */
export function createLastUsed(query: Query, log: Log): LastUsed {
  let used = new Map<string, Buffer>()
  let timer: NodeJS.Timeout | null = null

  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer)
    timer = null
    const hashes = [...used.values()]
    used = new Map()
    if (hashes.length === 0) return
    await noteUse(query, hashes).catch((error: unknown) =>
      log.warn({ err: error, keys: hashes.length }, 'keys.use-unwritten'),
    )
  }

  return {
    touch(hash) {
      used.set(hash.toString('base64'), hash)
      timer ??= setTimeout(() => void flush(), delayMs).unref()
    },
    flush,
  }
}
