import { createHmac, timingSafeEqual } from 'node:crypto'
import { refusal } from '#shared/core/refusal.ts'

const signatureBytes = 16

/** Signs the positions of pages, so that a client can only send back one that it was given. */
export class CursorCodec {
  readonly #secret: string

  constructor(secret: string) {
    this.#secret = secret
  }

  /** @param bound everything the page depends on: key, route, filters, epoch */
  write(position: unknown, bound: readonly unknown[]): string {
    const payload = Buffer.from(JSON.stringify(position)).toString('base64url')
    return `${payload}.${this.#sign(payload, bound).toString('base64url')}`
  }

  /** @throws Refusal `invalid` for anything that was not written with the same `bound`. */
  read(cursor: string, bound: readonly unknown[]): unknown {
    const [payload = '', signature = '', ...rest] = cursor.split('.')
    const provided = Buffer.from(signature, 'base64url')
    const isValid =
      rest.length === 0 &&
      provided.length === signatureBytes &&
      // Base64 spells the same bytes in several ways; only our own spelling is valid.
      provided.toString('base64url') === signature &&
      timingSafeEqual(provided, this.#sign(payload, bound))
    if (isValid) return JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown
    throw refusal('invalid', 'badCursor')
  }

  #sign(payload: string, bound: readonly unknown[]): Buffer {
    const text = `cursor\n${payload}\n${JSON.stringify(bound)}`
    return createHmac('sha256', this.#secret).update(text).digest().subarray(0, signatureBytes)
  }
}

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
 * @param read returns at most `limit` rows after a position, or from the start; it gets one more than the page holds
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
