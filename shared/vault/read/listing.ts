import type { Caller } from '#shared/access/caller.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import {
  listedRows,
  type ListedRow,
  type ListPosition,
  type ListFilter,
  type ListOrder,
} from '#shared/vault/read/listing.mongo.ts'
import { countTiers } from '#shared/vault/read/tier-counts.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { CursorCodec } from '#shared/core/cursor.ts'

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

type ListingBackend = { mongo: Mongo; cursors: CursorCodec }

/**
 * One page of the core vault and its reflections. Pages follow a key, not a count: rows that come or go
 * meanwhile neither repeat nor hide others, and an edit moves none.
 *
 * @throws Refusal `invalid` for a cursor of another list, or of the vault before it was cleared;
 *   `unavailable` when the memory store is out of reach or a text search takes too long.
 */
export async function listMemories(
  { mongo, cursors }: ListingBackend,
  { scope }: Pick<Caller, 'scope'>,
  question: ListQuestion,
): Promise<ListPage> {
  const { limit, cursor } = question
  const bound = cursorBinding(scope, question)
  const after = cursor === undefined ? undefined : (cursors.read(cursor, bound) as ListPosition)
  const [rows, counts] = await Promise.all([
    // One more than asked for tells whether there is a next page.
    listedRows(mongo, scope, { ...question, after, count: limit + 1 }),
    after ? null : countTiers(mongo, scope),
  ])
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  return { rows: page, next: last ? cursors.write(positionOf(last), bound) : null, counts }
}

/** What a cursor is good for: this list of this vault, as it is since its last deletion. */
function cursorBinding({ vault, epoch }: Caller['scope'], question: ListQuestion): unknown[] {
  const { sort, order, tier, importance, from, to, search } = question
  const filters = [tier, importance, from, to, search].map(value => value ?? null)
  return ['list', vault, epoch, sort, order, ...filters]
}

const positionOf = ({ importance, at, id }: Memory): ListPosition => [importance ?? null, at, id]
