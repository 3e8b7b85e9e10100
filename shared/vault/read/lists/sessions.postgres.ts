import type { Query } from '#shared/storage/postgres/connect.ts'
import type { Caller } from '#shared/access/caller.ts'
import { sessionTotals, type SessionTotals } from '#shared/vault/read/lists/counts.mongo.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { pageOf, type CursorCodec, type Page } from '#shared/core/page.ts'

/** A session in which something was stored since it was last cleared; it may be empty by now. */
type SessionRow = {
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
 * Sessions of a vault, the most recently stored first. The position is a row comparison, which the index serves
 * as a bound: as a filter, all rows before it would be read.
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

export type ListedSession = SessionRow & SessionTotals

/** Sessions read for one page; those that are empty by now are skipped. */
const lookedMax = 1_000

/**
 * One page of the sessions of a vault, the most recently stored first. Storing moves a session to the front:
 * between two pages it may be listed twice or not at all.
 *
 * @throws Refusal `invalid` for a cursor of another vault, or of this one before it was cleared; `unavailable`.
 */
export async function listSessions(
  { postgres, mongo, cursors, now }: Stores & { cursors: CursorCodec; now: () => number },
  { scope }: Pick<Caller, 'scope'>,
  { limit, cursor }: { limit: number; cursor: string | undefined },
): Promise<Page<ListedSession>> {
  const cursorBinding = ['sessions', scope.vault, scope.epoch]
  let before =
    cursor === undefined ? undefined : (cursors.read(cursor, cursorBinding) as SessionPosition)
  const sessions: ListedSession[] = []
  for (let scanned = 0; scanned < lookedMax;) {
    // One row more than the page holds tells whether there is a next page.
    const rows = await storedSessions(postgres.query, scope.vault, { before, limit: limit + 1 })
    const sums = await sessionTotals(mongo, scope, rows, now())
    sessions.push(...rows.flatMap(row => listed(row, sums.get(row.session))))
    if (sessions.length > limit) {
      const page = pageOf(sessions, limit, positionOf)
      return { rows: page.rows, next: cursors.write(page.next, cursorBinding) }
    }
    if (rows.length <= limit) return { rows: sessions, next: null }
    scanned += rows.length
    before = positionOf(rows.at(-1)!)
  }
  return { rows: sessions, next: cursors.write(before, cursorBinding) }
}

const listed = (row: SessionRow, sum: SessionTotals | undefined): ListedSession[] =>
  sum ? [{ ...row, ...sum }] : []

const positionOf = ({ position, session }: SessionRow): SessionPosition => ({
  storedAt: position,
  session,
})
