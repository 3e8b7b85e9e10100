import type { Query } from '#shared/storage/postgres/connect.ts'

/** Events of a slice: reading as many takes some 0.02 s. */
const sliceRows = 10_000

/** `at > after and at <= upTo`, as texts with microseconds: a Date has none. */
export type UsageSlice = { after: string; upTo: string }

/**
 * Walks the usage events of a key, or of the whole service, in the order of time: `usage_events` is never
 * trimmed, so no statement may read all of it. There is no index on its vaults and accounts, which each counted
 * request would have to write.
 *
 * @param after where to begin: a time, or `-infinity`
 */
export async function* usageSlices(
  query: Query,
  { key, after }: { key?: Buffer; after: string },
): AsyncGenerator<UsageSlice> {
  const ofKey = key ? 'and key_hash = $3' : ''
  for (let from = after; ;) {
    const { rows } = await query<{ upTo: string }>(
      `select at::text as "upTo" from usage_events where at > $1::timestamptz ${ofKey}
       order by usage_events.at offset $2 limit 1`,
      [from, sliceRows, ...(key ? [key] : [])],
    )
    const upTo = rows[0]?.upTo ?? 'infinity'
    yield { after: from, upTo }
    if (!rows[0]) return
    from = upTo
  }
}
