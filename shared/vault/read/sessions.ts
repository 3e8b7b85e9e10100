import type { Caller } from '#shared/access/caller.ts'
import { sessionTotals, type SessionTotals } from '#shared/vault/read/session-totals.mongo.ts'
import {
  storedSessions,
  type SessionPosition,
  type SessionRow,
} from '#shared/vault/read/sessions.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { CursorCodec } from '#shared/core/cursor.ts'

export type ListedSession = SessionRow & SessionTotals

export type SessionPage = {
  sessions: ListedSession[]
  /** Where the next page begins; null when there is none. */
  next: string | null
}

/** Sessions looked at for one page: those whose memories were all removed one by one are passed over. */
const lookedMax = 1_000

/**
 * One page of the sessions of a vault, the one that was stored to last first. What is stored meanwhile
 * moves its session to the front: it may be seen twice or, on later pages, not at all.
 *
 * @throws Refusal `invalid` for a cursor of another vault, or of this one before it was cleared;
 *   `unavailable` when a store is out of reach.
 */
export async function listSessions(
  { postgres, mongo, cursors, now }: Stores & { cursors: CursorCodec; now: () => number },
  { scope }: Pick<Caller, 'scope'>,
  { limit, cursor }: { limit: number; cursor: string | undefined },
): Promise<SessionPage> {
  const cursorBinding = ['sessions', scope.vault, scope.epoch]
  const nextAfter = (row: SessionRow | undefined): string | null =>
    row ? cursors.write(positionOf(row), cursorBinding) : null
  let before =
    cursor === undefined ? undefined : (cursors.read(cursor, cursorBinding) as SessionPosition)
  const found: ListedSession[] = []
  for (let scanned = 0; scanned < lookedMax;) {
    // One more than asked for tells whether there is a next page.
    const rows = await storedSessions(postgres.query, scope.vault, { before, limit: limit + 1 })
    const sums = await sessionTotals(mongo, scope, rows, now())
    found.push(...rows.flatMap(row => listed(row, sums.get(row.session))))
    if (found.length > limit) {
      const sessions = found.slice(0, limit)
      return { sessions, next: nextAfter(sessions.at(-1)) }
    }
    if (rows.length <= limit) return { sessions: found, next: null }
    scanned += rows.length
    before = positionOf(rows.at(-1)!)
  }
  return { sessions: found, next: cursors.write(before, cursorBinding) }
}

const listed = (row: SessionRow, sum: SessionTotals | undefined): ListedSession[] =>
  sum ? [{ ...row, ...sum }] : []

const positionOf = ({ position, session }: SessionRow): SessionPosition => ({
  storedAt: position,
  session,
})
