import { Refusal } from '#shared/core/errors.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'

/** Where a row stands in time: its moment in epoch milliseconds, and its id among those of the same. */
export type TimelinePosition = { at: number; id: string }

/** A span of time as it is asked for. */
export type RequestedWindow = {
  /** The millisecond it begins in, and how many of the rows of that one come before it. */
  from: { at: number; skipped: number }
  /** The millisecond it ends in, and the number of its last row in that one, from 0; null: all of them. */
  to: { at: number; last: number | null }
  /**
   * Reflections whose period goes on beyond the end count as well, at the end. On the pages after the
   * one that held them they would come again.
   */
  includeOverlapping: boolean
}

/** A span of time between two rows, both included; an end without an id takes in its whole millisecond. */
export type TimeWindow = {
  from: { at: number; id?: string }
  to: { at: number; id?: string }
  includeOverlapping: boolean
}

/**
 * Rows know milliseconds; where many share one, the nanoseconds behind it count them, in the order of
 * their ids. So a page may end inside a millisecond, and where it ended is an ordinary ISO time. The
 * highest numbers say as well that reflections beyond the end have been told already.
 */
const overlapsReturnedOffset = 900_000
const nanosecondsMax = 999_999

/**
 * The span between what a client names: days count whole, a time counts as finely as it is written, both
 * ends included.
 *
 * @throws Refusal `invalid` when it ends before it begins.
 */
export function parseTimeWindow(
  from: string,
  to: string | undefined,
  now: number,
): RequestedWindow {
  const start = {
    at: parseStart(truncateToMilliseconds(from)),
    skipped: parseNanoseconds(from, '0'),
  }
  const end =
    to === undefined ? { at: now, last: null, includeOverlapping: true } : parseWindowEnd(to)
  // The first row of a window may have been the last of a page: then what is left is empty.
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

function parseWindowEnd(
  text: string,
): RequestedWindow['to'] & Pick<RequestedWindow, 'includeOverlapping'> {
  const at = parseExclusiveEnd(truncateToMilliseconds(text)) - 1
  const digits = fractionDigits(text).length
  if (digits <= 3) return { at, last: null, includeOverlapping: true }
  const nanoseconds = parseNanoseconds(text, '9')
  if (digits !== 9 || nanoseconds < overlapsReturnedOffset)
    return { at, last: nanoseconds, includeOverlapping: true }
  const last = nanoseconds === nanosecondsMax ? null : nanoseconds - overlapsReturnedOffset
  return { at, last, includeOverlapping: false }
}

/** The end of what comes before a row: `row` is its number in its millisecond. */
export function windowEndBefore(
  { at }: TimelinePosition,
  row: number,
  includeOverlapping: boolean,
): string {
  if (row === 0) return isoWithNanoseconds(at - 1, nanosecondsMax)
  const closed = overlapsReturnedOffset + row - 1
  return isoWithNanoseconds(at, includeOverlapping || closed >= nanosecondsMax ? row - 1 : closed)
}

/** The beginning of what comes after a row. */
export const windowStartAfter = ({ at }: TimelinePosition, row: number): string =>
  isoWithNanoseconds(at, row + 1)

function isoWithNanoseconds(at: number, nanoseconds: number): string {
  const digits = String(Math.min(nanoseconds, nanosecondsMax)).padStart(6, '0')
  return `${new Date(at).toISOString().slice(0, -1)}${digits}Z`
}

const fractionDigits = (text: string): string => /\.(\d+)/.exec(text)?.[1] ?? ''

/** Date reads no more than nine digits rightly. */
const truncateToMilliseconds = (text: string): string => text.replace(/(\.\d{3})\d+/, '$1')

/** What a time says below the millisecond; `fill` stands for the digits it leaves open. */
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
