import type { Query } from '#shared/storage/postgres/connect.ts'

/** A session in which something was stored since it was last cleared; it may be empty by now. */
export type SessionRow = {
  session: string
  /** How many times it was cleared; its memories carry this number. */
  epoch: number
  /** When something was last stored or changed in it. */
  storedAt: Date
  /** The same to the microsecond. */
  position: string
}

/** Where a page of sessions ended. */
export type SessionPosition = { storedAt: string; session: string }

/**
 * Sessions of a vault, the most recently stored first. The position is a row comparison, which the index
 * serves as a bound in any plan: as a filter, all rows before it would be read.
 */
export async function storedSessions(
  query: Query,
  vault: string,
  { before, limit }: { before: SessionPosition | undefined; limit: number },
): Promise<SessionRow[]> {
  const { rows } = await query<SessionRow>(
    `select session, epoch, stored_at as "storedAt", stored_at::text as position from sessions
     where vault = $1 and stored_at is not null
       and (stored_at, session) < (coalesce($2, 'infinity'::timestamptz), coalesce($3, ''))
     order by stored_at desc, session desc limit $4`,
    [vault, before?.storedAt ?? null, before?.session ?? null, limit],
    'sessions.stored',
  )
  return rows
}
