import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * The changes in one partition of a vault after a revision, up to the scope's own.
 *
 * @returns null when the log was trimmed or the partition was cleared.
 */
export async function changesSince(
  query: Query,
  { vault, revision }: VaultScope,
  session: string | null,
  since: number,
): Promise<{ stored: string[]; removed: string[] } | null> {
  const { rows } = await query<{
    session: string
    stored: string[]
    removed: string[]
    cleared: boolean
    revision: string
  }>(
    `select session, revision, cleared,
            case when session = $4 then stored else '{}' end as stored,
            case when session = $4 then removed else '{}' end as removed
     from vault_changes where vault = $1 and revision > $2 and revision <= $3 order by revision`,
    [vault, since, revision, session ?? ''],
    'changes.since',
  )
  const revisions = new Set(rows.map(row => row.revision))
  if (revisions.size !== revision - since) return null
  const partitionChanges = rows.filter(row => row.session === (session ?? ''))
  if (partitionChanges.some(row => row.cleared)) return null
  return {
    stored: partitionChanges.flatMap(row => row.stored),
    removed: partitionChanges.flatMap(row => row.removed),
  }
}

/** The epoch of a session vault: 0 until it is cleared for the first time. */
export async function findSessionEpoch(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
  session: string | null,
): Promise<number> {
  if (session === null) return 0
  const { rows } = await query<{ epoch: number }>(
    'select epoch from sessions where vault = $1 and session = $2',
    [vault, session],
    'sessions.epoch',
  )
  return rows[0]?.epoch ?? 0
}

/** Ids of at most `max` memories of a partition that were stored or changed in the last minutes. */
export async function findRecentChanges(
  query: Query,
  { vault }: Pick<VaultScope, 'vault'>,
  session: string | null,
  { minutes, max }: { minutes: number; max: number },
): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    `select distinct unnest(stored) as id from vault_changes
     where vault = $1 and session = $2 and at > now() - make_interval(mins => $3)
       and revision > (select revision from vaults where id = $1) - $4
     limit $5`,
    [vault, session ?? '', minutes, revisionsMax, max],
    'changes.recent',
  )
  return rows.map(({ id }) => id)
}

/** The primary key of the log begins with vault and revision; nothing indexes vault and time. */
const revisionsMax = 50_000
