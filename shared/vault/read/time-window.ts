import { Refusal } from '#shared/core/errors.ts'
import { requireKnown } from '#shared/vault/read/as-of.ts'
import { momentText, parseExclusiveEnd, parseStart, type Moment } from '#shared/core/dates.ts'

/** The position of a row in time: epoch milliseconds, and its id among rows of the same millisecond. */
export type TimelinePosition = { at: number; id: string }

/** A span of time as a client requests it. */
export type RequestedWindow = {
  /** The millisecond it begins in, and how many rows of that millisecond precede it. */
  from: { at: number; skipped: number }
  /** The millisecond it ends in, and the number (from 0) of its last row there; null: all its rows. */
  to: { at: number; last: number | null }
  /**
   * Whether reflections whose period overlaps the end belong to the span, at its end. False for the pages
   * after the one that returned them.
   */
  includeOverlapping: boolean
  /** Of a window as of a moment: overlapping reflections of a later time (epoch ms) were unknown then. */
  asOf?: number
}

/** A span of time between two rows, both included; an end without an id includes its whole millisecond. */
export type TimeWindow = {
  from: { at: number; id?: string }
  to: { at: number; id?: string }
  includeOverlapping: boolean
  asOf?: number
}

/**
 * A page position is an ISO time with nine digits. Rows have times in milliseconds; the last six digits
 * are the number of a row among those of its millisecond, ordered by id, so that a page can end inside a
 * millisecond. Numbers from `overlapsReturnedOffset` on also say that the reflections that overlap the end
 * were returned before; `nanosecondsMax` says so for a whole millisecond.
 */
const overlapsReturnedOffset = 900_000
const nanosecondsMax = 999_999

/**
 * The span between two times of a client, both included: a date is the whole day, a time is as long as the
 * last digit that is written. A page position (see above) counts rows below the millisecond.
 *
 * @throws Refusal `invalid` when it ends before it begins.
 */
export function parseTimeWindow(
  from: Moment,
  to: Moment | undefined,
  now: number,
): RequestedWindow {
  const start = { at: parseStart(from), skipped: parseNanoseconds(momentText(from), '0') }
  const end =
    to === undefined
      ? { at: now, last: null, includeOverlapping: true }
      : parseWindowEnd(momentText(to))
  // A page may have ended with the first row of the window: the rest is empty, and ends 1 ms before it.
  const slack = end.last === null && end.includeOverlapping ? 0 : 1
  if (start.at > end.at + slack) {
    const hint = to === undefined ? 'Without to the span ends now' : 'from is the earlier end'
    throw new Refusal('invalid', 'from lies after to', hint)
  }
  return {
    from: start,
    to: { at: end.at, last: end.last },
    includeOverlapping: end.includeOverlapping,
  }
}

/**
 * The part of a span that was known at a moment.
 *
 * @param asOf epoch milliseconds
 * @throws Refusal `invalid` when the span begins later.
 */
export function windowAsOf(window: RequestedWindow, asOf: number | undefined): RequestedWindow {
  if (asOf === undefined) return window
  requireKnown(window.from.at, asOf)
  return window.to.at > asOf
    ? { ...window, to: { at: asOf, last: null }, asOf }
    : { ...window, asOf }
}

function parseWindowEnd(
  text: string,
): RequestedWindow['to'] & Pick<RequestedWindow, 'includeOverlapping'> {
  const at = parseExclusiveEnd(text) - 1
  const digits = fractionDigits(text).length
  if (digits <= 3) return { at, last: null, includeOverlapping: true }
  const nanoseconds = parseNanoseconds(text, '9')
  if (digits !== 9 || nanoseconds < overlapsReturnedOffset)
    return { at, last: nanoseconds, includeOverlapping: true }
  const last = nanoseconds === nanosecondsMax ? null : nanoseconds - overlapsReturnedOffset
  return { at, last, includeOverlapping: false }
}

/** The page position that ends before a row. @param row its number in its millisecond. */
export function windowEndBefore(
  { at }: TimelinePosition,
  row: number,
  includeOverlapping: boolean,
): string {
  if (row === 0) return isoWithNanoseconds(at - 1, nanosecondsMax)
  const withoutOverlaps = overlapsReturnedOffset + row - 1
  return isoWithNanoseconds(
    at,
    includeOverlapping || withoutOverlaps >= nanosecondsMax ? row - 1 : withoutOverlaps,
  )
}

/** The page position that begins after a row. @param row its number in its millisecond. */
export const windowStartAfter = ({ at }: TimelinePosition, row: number): string =>
  isoWithNanoseconds(at, row + 1)

function isoWithNanoseconds(at: number, nanoseconds: number): string {
  const digits = String(Math.min(nanoseconds, nanosecondsMax)).padStart(6, '0')
  return `${new Date(at).toISOString().slice(0, -1)}${digits}Z`
}

const fractionDigits = (text: string): string => /\.(\d+)/.exec(text)?.[1] ?? ''

/** The six digits of a time below the millisecond; missing ones are filled with `fill`. */
function parseNanoseconds(text: string, fill: '0' | '9'): number {
  const digits = fractionDigits(text).slice(3, 9)
  return digits === '' && fill === '0' ? 0 : Number(digits.padEnd(6, fill))
}

/** Earlier rows first. */
export const comparePositions = (a: TimelinePosition, b: TimelinePosition): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Whether a position lies in a window. */
export function isWithin({ from, to }: TimeWindow, { at, id }: TimelinePosition): boolean {
  if (at < from.at || at > to.at) return false
  if (at === from.at && from.id !== undefined && id < from.id) return false
  return !(at === to.at && to.id !== undefined && id > to.id)
}
