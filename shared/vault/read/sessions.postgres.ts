import type { Query } from '#shared/storage/postgres/connect.ts'

/** A session that was stored to since it was last cleared; it may have nothing left. */
export type SessionRow = {
  session: string
  /** It has been cleared so often; what is stored there bears this number. */
  epoch: number
  /** When something was stored in it, or changed there. */
  storedAt: Date
  /** The same to the microsecond. */
  position: string
}

/** Where a page of sessions ended. */
export type SessionPosition = { storedAt: string; session: string }

/**
 * Sessions of a vault, the one that was stored to last first. Where a page begins is a bound of the index
 * in any plan: as a filter, all before it would be read.
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
