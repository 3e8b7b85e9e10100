import { MongoServerError, type Filter, type Sort } from 'mongodb'
import { refusal } from '#shared/core/refusal.ts'
import {
  tiers as allTiers,
  type Memory,
  type Tier,
  type VaultScope,
} from '#shared/domain/memory.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline, deadlineMs } from '#shared/storage/mongo/deadline.ts'
import {
  memoryFields,
  memoryFromDocument,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import type { Feedback } from '#shared/domain/feedback.ts'
import type { Span } from '#shared/domain/lease.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { MemoryFilter } from '#shared/vault/read/search/nearest.ts'
import { boundsAsOf } from '#shared/vault/read/search/as-of.ts'
import { countTiers } from '#shared/vault/read/lists/counts.mongo.ts'
import { readPage, type CursorCodec, type Page } from '#shared/core/page.ts'
import { epochFilter, findDocument } from '#shared/storage/mongo/commands.ts'

/** A row as lists show it. */
export type ListedRow = Memory & {
  /** A reflection covers it. */
  consolidated: boolean
  feedback?: Feedback
  /** The period that a reflection covers. */
  covers: Span | null
}

/** Importance, event time in epoch milliseconds and id of the last row of a page. */
type ListPosition = [importance: number | null, at: number, id: string]

export type ListPageQuery = ListFilter &
  ListOrder & { after: ListPosition | undefined; count: number }

/** A text search reads every text: 60,000 short ones take 0.2 s. The server ends it before the driver. */
const searchReserveMs = 500

const maxTimeExpiredCode = 50

/**
 * The next `count` rows of the core vault in the requested order, read as a few ranges of one index each, the
 * next only when the one before has not filled the page. Every range names its index: with several to choose
 * from, the server runs them against each other first.
 *
 * @throws Refusal `unavailable` also when a text search takes too long.
 */
export async function listedRows(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  read: ListPageQuery,
): Promise<ListedRow[]> {
  const signal = deadline(memories)
  const rowsIn = ({ filter, sort, hint }: IndexRange, limit: number): Promise<ListedRow[]> =>
    memories
      .find(
        {
          ...coreFilter(scope),
          ...textFilter(read.search),
          ...conditionFilter(read.condition),
          ...filter,
        },
        {
          projection: listedFields,
          sort,
          hint,
          limit,
          signal,
          ...(read.search !== undefined && { maxTimeMS: deadlineMs(memories) - searchReserveMs }),
        },
      )
      .map(listedRowFromDocument)
      .toArray()
      .catch(refuseWhenSlow)

  const [first, second, ...others] = listRanges(read)
  // The rest of one millisecond rarely fills a page, so the range after it is read at the same time.
  const rows = (
    await Promise.all([
      first ? rowsIn(first, read.count) : [],
      second && read.after ? rowsIn(second, read.count) : [],
    ])
  ).flat()
  for (const range of second && !read.after ? [second, ...others] : others) {
    if (rows.length >= read.count) break
    rows.push(...(await rowsIn(range, read.count - rows.length)))
  }
  return rows.slice(0, read.count)
}

/** The row of a memory of the core or of a session; undefined where this epoch of the vault has none. */
export async function findListedRow(
  { memories }: Pick<Mongo, 'memories'>,
  scope: VaultScope,
  id: string,
): Promise<ListedRow | undefined> {
  const wanted = { _id: { $eq: id }, ...epochFilter(scope) }
  const found = await findDocument(memories, wanted, { projection: listedFields, hint: idIndex })
  return found ? listedRowFromDocument(found) : undefined
}

const coreFilter = ({ vault, epoch }: VaultScope): Filter<MemoryDocument> => ({
  ...epochFilter({ vault, epoch }),
  session: { $eq: '' },
})

/** All but the vectors. */
export const listedFields = { ...memoryFields, consolidated: 1, feedback: 1, covers: 1 } as const

export function listedRowFromDocument(document: MemoryDocument): ListedRow {
  const { consolidated, feedback, covers } = document
  return {
    ...memoryFromDocument(document),
    consolidated,
    ...(feedback && { feedback }),
    covers: covers ? { from: covers.from.getTime(), to: covers.to.getTime() } : null,
  }
}

type IndexRange = { filter: Filter<MemoryDocument>; sort: Sort; hint: string }

/** The index ranges of the rest of a list, in order. */
function listRanges(read: ListPageQuery): IndexRange[] {
  const { sort, after, importance } = read
  if (sort === 'date') {
    const rated = importance === undefined ? {} : { importance: { $gte: importance } }
    return rangesByTime(read, rated, after)
  }
  const isUnrated = after !== undefined && after[0] === null
  const ratedRanges = isUnrated || read.tier === 1 ? [] : rangesByImportance(read, after)
  if (importance !== undefined) return ratedRanges
  if (read.tier !== undefined && read.tier !== 1) return ratedRanges
  const raw = { ...read, tier: 1 as const }
  return [...ratedRanges, ...rangesByTime(raw, {}, isUnrated ? after : undefined)]
}

function rangesByTime(
  read: ListPageQuery,
  rated: Filter<MemoryDocument>,
  after: ListPosition | undefined,
): IndexRange[] {
  const sort: Sort = { at: directionOf(read), _id: directionOf(read) }
  const tier = { $in: read.tier === undefined ? [...allTiers] : [read.tier] }
  return timeRangesAfter(read, after).map(times => ({
    filter: { tier, ...rated, ...times },
    sort,
    hint: partitionIndex,
  }))
}

function rangesByImportance(read: ListPageQuery, after: ListPosition | undefined): IndexRange[] {
  const { importance: least = 1, order, tier } = read
  const direction = directionOf(read)
  const isFalling = order === 'newest_first'
  const lastImportance = after?.[0] ?? null
  const anytime = timeRangesAfter(read, undefined)
  const ratings =
    lastImportance === null
      ? [{ importance: { $gte: least }, times: anytime }]
      : [
          { importance: { $eq: lastImportance }, times: timeRangesAfter(read, after) },
          {
            importance: isFalling
              ? { $gte: least, $lt: lastImportance }
              : { $gt: Math.max(least, lastImportance) },
            times: anytime,
          },
        ]
  return ratings.flatMap(({ importance, times }) =>
    times.map(time => ({
      filter: { importance, ...(tier !== undefined && { tier: { $eq: tier } }), ...time },
      sort: { importance: direction, at: direction, _id: direction },
      hint: 'rated',
    })),
  )
}

const directionOf = ({ order }: ListOrder): 1 | -1 => (order === 'newest_first' ? -1 : 1)

/**
 * The times after a page: the rest of the millisecond of its last row, then all later (or earlier) ones. The
 * millisecond is given as a range: given as a value, the server reads and sorts all its rows for each page
 * (1,823 keys instead of 53 where 1,820 rows share it).
 */
function timeRangesAfter(
  { order, from, to }: ListPageQuery,
  after: ListPosition | undefined,
): Filter<MemoryDocument>[] {
  const window = {
    ...(from !== undefined && { $gte: new Date(from) }),
    ...(to !== undefined && { $lt: new Date(to) }),
  }
  if (!after) return [Object.keys(window).length > 0 ? { at: window } : {}]
  const [, at, id] = after
  const moment = new Date(at)
  const same = { $gt: new Date(at - 1), $lte: moment }
  return order === 'newest_first'
    ? [{ at: same, _id: { $lt: id } }, { at: { ...window, $lt: moment } }]
    : [{ at: same, _id: { $gt: id } }, { at: { ...window, $gt: moment } }]
}

const textFilter = (search: string | undefined): Filter<MemoryDocument> =>
  search === undefined ? {} : { text: { $regex: textPattern(search), $options: 'i' } }

function refuseWhenSlow(error: unknown): never {
  if (error instanceof MongoServerError && error.code === maxTimeExpiredCode) {
    throw refusal('unavailable', 'listingTooSlow')
  }
  return refuseWhenUnreachable(error)
}

type ListFilter = Omit<MemoryFilter, 'tiers'> & {
  tier: Tier | undefined
  /** Event times in [from, to), epoch milliseconds. */
  from: number | undefined
  to: number | undefined
  /** Part of the text, case-insensitive. */
  search: string | undefined
}

type ListOrder = {
  /** By importance: equal ones in the order of time, unrated rows last. */
  sort: 'date' | 'importance'
  /** Order in time; by importance the highest first, or the lowest. */
  order: 'newest_first' | 'oldest_first'
}

/**
 * One page of the core vault and its reflections. A page begins after a key: rows that are added or deleted
 * between two pages neither repeat nor hide others, and an edit moves no row.
 *
 * @throws Refusal `invalid` for a cursor of another list, or of the vault before it was cleared; `unavailable`
 *   also when a text search takes too long.
 */
export async function listMemories(
  { mongo, cursors }: { mongo: Mongo; cursors: CursorCodec },
  { scope }: Pick<Caller, 'scope'>,
  listQuestion: ListFilter &
    ListOrder & {
      limit: number
      /** Epoch ms: later memories are left out, also of the counts. */
      asOf?: number | undefined
      /** `next` of the previous page. */
      cursor: string | undefined
    },
): Promise<
  Page<ListedRow> & {
    /** Numbers of all memories of the core vault, without the filters; on the first page only. */
    counts: Record<Tier, number> | null
  }
> {
  const { asOf, ...asked } = listQuestion
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
  const { sort, order, tier, importance, from, to, search, condition } = question
  const filters = [tier, importance, from, to, search, condition].map(value => value ?? null)
  return ['list', vault, epoch, sort, order, ...filters]
}

const positionOf = ({ importance, at, id }: Memory): ListPosition => [importance ?? null, at, id]

/** Soft hyphens, zero-width characters, marks of direction and the selector of emoji: what stands between two letters unseen. */
const invisible = '[\\p{Cf}\ufe0f]'
const gap = `${invisible}*`
const allInvisible = new RegExp(invisible, 'gu')

/** MongoDB takes patterns of up to 32,764 bytes. */
const patternBytesMax = 32_000

/** Letters that are one in some spelling, beyond upper and lower case: one pattern for all of them. */
const sameLetters: readonly (readonly [letters: RegExp, pattern: string])[] = [
  [/^(?:ss|ß|ẞ)/i, `(?:s${gap}s|ß|ẞ)`],
  // Turkish has four letters i: with and without a dot, in both cases; a dot may be written apart.
  [/^(?:i\u0307?|İ|ı)/i, '(?:i\u0307?|İ|ı)'],
  [/^[σς]/i, '[σςΣ]'],
]

const special = /[\\^$.*+?()[\]{}|]/g

/**
 * The source of a regular expression, to be run without regard to case, that finds a text however it is spelled:
 * composed or not, `ß` as `ss`, `i` with or without its dot, with or without invisible characters. A search too
 * long for that is taken as it is.
 */
export function textPattern(search: string): string {
  const plain = search.replaceAll(allInvisible, '') || search
  const forms = [...new Set([plain, plain.normalize('NFC'), plain.normalize('NFD')])].map(piecesOf)
  const pattern = forms.map(pieces => pieces.join(gap)).join('|')
  if (Buffer.byteLength(pattern) <= patternBytesMax) return pattern
  return forms.map(pieces => pieces.join('')).join('|')
}

function piecesOf(form: string): string[] {
  const pieces: string[] = []
  for (let rest = form; rest !== '';) {
    const [piece, source] = firstPiece(rest)
    pieces.push(source)
    rest = rest.slice(piece.length)
  }
  return pieces
}

function firstPiece(text: string): [piece: string, source: string] {
  for (const [letters, pattern] of sameLetters) {
    const piece = letters.exec(text.slice(0, 3))?.[0]
    if (piece) return [piece, pattern]
  }
  const letter = String.fromCodePoint(text.codePointAt(0)!)
  return [letter, letter.replaceAll(special, String.raw`\$&`)]
}
