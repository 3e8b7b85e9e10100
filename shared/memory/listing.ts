import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/key/caller.ts'
import type { Memory, Tier } from '#shared/memory/memory.ts'
import { listedRows, type ListedRow, type ListPosition } from '#shared/mongo/listing.ts'
import { tierCountsOf } from '#shared/mongo/tier-counts.ts'

export type ListFilter = {
  tier: Tier | undefined
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Event times in [from, to), epoch milliseconds. */
  from: number | undefined
  to: number | undefined
  /** A piece of the text, whatever its case. */
  search: string | undefined
}

export type ListOrder = {
  /** By importance: the most important first, unrated rows last, and equals in the order of time. */
  sort: 'date' | 'importance'
  /** Which way time goes. */
  order: 'newest_first' | 'oldest_first'
}

export type ListQuestion = ListFilter &
  ListOrder & {
    limit: number
    /** Of the page before. */
    cursor: string | undefined
  }

export type ListPage = {
  rows: ListedRow[]
  /** Where the next page begins; null when there is none. */
  next: string | null
  /** All memories of the core vault, whatever the filters; on the first page. */
  counts: Record<Tier, number> | null
}

type Listing = Pick<Backend, 'mongo' | 'cursors'>

/**
 * One page of the core vault and its reflections. Pages follow a key, not a count: rows that come or go
 * meanwhile neither repeat nor hide others, and an edit moves none.
 *
 * @throws Refusal `invalid` for a cursor of another list, or of the vault before it was cleared;
 *   `unavailable` when the memory store is out of reach or a text search takes too long.
 */
export async function listMemories(
  { mongo, cursors }: Listing,
  { scope }: Pick<Caller, 'scope'>,
  question: ListQuestion,
): Promise<ListPage> {
  const { limit, cursor } = question
  const bound = boundOf(scope, question)
  const after = cursor === undefined ? undefined : (cursors.read(cursor, bound) as ListPosition)
  const [rows, counts] = await Promise.all([
    // One more than asked for tells whether there is a next page.
    listedRows(mongo, scope, { ...question, after, count: limit + 1 }),
    after ? null : tierCountsOf(mongo, scope),
  ])
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  return { rows: page, next: last ? cursors.write(positionOf(last), bound) : null, counts }
}

/** What a cursor is good for: this list of this vault, as it is since its last deletion. */
function boundOf({ vault, epoch }: Caller['scope'], question: ListQuestion): unknown[] {
  const { sort, order, tier, importance, from, to, search } = question
  const filters = [tier, importance, from, to, search].map(value => value ?? null)
  return ['list', vault, epoch, sort, order, ...filters]
}

const positionOf = ({ importance, at, id }: Memory): ListPosition => [importance ?? null, at, id]
