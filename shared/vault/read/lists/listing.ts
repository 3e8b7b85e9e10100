import type { Caller } from '#shared/access/caller.ts'
import type { Memory, Tier } from '#shared/domain/memory.ts'
import {
  listedRows,
  type ListedRow,
  type ListPosition,
  type ListFilter,
  type ListOrder,
} from '#shared/vault/read/lists/listing.mongo.ts'
import { boundsAsOf } from '#shared/vault/read/search/as-of.ts'
import { countTiers } from '#shared/vault/read/lists/tier-counts.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { CursorCodec } from '#shared/core/cursor.ts'
import { readPage, type Page } from '#shared/core/page.ts'

export type ListQuestion = ListFilter &
  ListOrder & {
    limit: number
    /** Epoch ms: later memories are left out, also of the counts. */
    asOf?: number | undefined
    /** `next` of the previous page. */
    cursor: string | undefined
  }

export type ListPage = Page<ListedRow> & {
  /** Numbers of all memories of the core vault, without the filters; on the first page only. */
  counts: Record<Tier, number> | null
}

type ListingBackend = { mongo: Mongo; cursors: CursorCodec }

/**
 * One page of the core vault and its reflections. A page begins after a key, not after a count: rows that
 * are added or deleted between two pages neither repeat nor hide others, and an edit moves no row.
 *
 * @throws Refusal `invalid` for a cursor of another list, or of the vault before it was cleared;
 *   `unavailable` when the memory store is out of reach or a text search takes too long.
 */
export async function listMemories(
  { mongo, cursors }: ListingBackend,
  { scope }: Pick<Caller, 'scope'>,
  { asOf, ...asked }: ListQuestion,
): Promise<ListPage> {
  const { to: end = Infinity } = boundsAsOf(asOf)
  const question = asOf === undefined ? asked : { ...asked, to: Math.min(asked.to ?? end, end) }
  const { limit, cursor } = question
  const bound = cursorBinding(scope, question)
  const [page, counts] = await Promise.all([
    readPage(
      cursors,
      { limit, cursor, bound },
      (after: ListPosition | undefined, count) =>
        listedRows(mongo, scope, { ...question, after, count }),
      positionOf,
    ),
    cursor === undefined ? countTiers(mongo, scope, asOf) : null,
  ])
  return { ...page, counts }
}

/** A cursor is valid for the same filters and order in the same vault, until the vault is cleared. */
function cursorBinding(
  { vault, epoch }: Caller['scope'],
  question: ListFilter & ListOrder,
): unknown[] {
  const { sort, order, tier, importance, from, to, search, metadata } = question
  const filters = [tier, importance, from, to, search, metadata].map(value => value ?? null)
  return ['list', vault, epoch, sort, order, ...filters]
}

const positionOf = ({ importance, at, id }: Memory): ListPosition => [importance ?? null, at, id]
