import type { CursorCodec } from '#shared/core/cursor.ts'

/** A page of a list, as a client asks for it. */
export type PageRequest = {
  limit: number
  /** The one that came with the page before; undefined for the first page. */
  cursor: string | undefined
  /** Everything the list depends on, as for `CursorCodec`. */
  bound: readonly unknown[]
}

export type Page<Row, Position = string> = {
  rows: Row[]
  /** Where the next page begins; null when there is none. */
  next: Position | null
}

/**
 * Reads one page of a list that is ordered by a key. Rows that are added or removed between two pages
 * neither repeat nor hide others.
 *
 * @param read gives at most `limit` rows after a position, or from the start; it is asked for one row more
 *   than the page holds, which tells whether there is a next page
 * @throws Refusal `invalid` for a cursor of another list.
 */
export async function readPage<Row, Position>(
  cursors: CursorCodec,
  { limit, cursor, bound }: PageRequest,
  read: (after: Position | undefined, limit: number) => Promise<Row[]>,
  positionOf: (row: Row) => Position,
): Promise<Page<Row>> {
  const after = cursor === undefined ? undefined : (cursors.read(cursor, bound) as Position)
  const { rows, next } = pageOf(await read(after, limit + 1), limit, positionOf)
  return { rows, next: next === null ? null : cursors.write(next, bound) }
}

/** The first `limit` rows; `next` is the position of the last of them when there are more. */
export function pageOf<Row, Position>(
  rows: readonly Row[],
  limit: number,
  positionOf: (row: Row) => Position,
): Page<Row, Position> {
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  return { rows: page, next: last === undefined ? null : positionOf(last) }
}
