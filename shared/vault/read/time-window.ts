import { Refusal } from '#shared/core/errors.ts'
import { momentAfter, momentFrom } from '#shared/core/dates.ts'

/** Where a row stands in time: its moment in epoch milliseconds, and its id among those of the same. */
export type Position = { at: number; id: string }

/** A span of time as it is asked for. */
export type AskedWindow = {
  /** The millisecond it begins in, and how many of the rows of that one come before it. */
  from: { at: number; skipped: number }
  /** The millisecond it ends in, and the number of its last row in that one, from 0; null: all of them. */
  to: { at: number; last: number | null }
  /**
   * Reflections whose period goes on beyond the end count as well, at the end. On the pages after the
   * one that held them they would come again.
   */
  beyond: boolean
}

/** A span of time between two rows, both included; an end without an id takes in its whole millisecond. */
export type TimeWindow = {
  from: { at: number; id?: string }
  to: { at: number; id?: string }
  beyond: boolean
}

/**
 * Rows know milliseconds; where many share one, the nanoseconds behind it count them, in the order of
 * their ids. So a page may end inside a millisecond, and where it ended is an ordinary ISO time. The
 * highest numbers say as well that reflections beyond the end have been told already.
 */
const closedFrom = 900_000
const nanosecondsMax = 999_999

/**
 * The span between what a client names: days count whole, a time counts as finely as it is written, both
 * ends included.
 *
 * @throws Refusal `invalid` when it ends before it begins.
 */
export function askedWindow(from: string, to: string | undefined, now: number): AskedWindow {
  const start = { at: momentFrom(inMilliseconds(from)), skipped: nanosecondsOf(from, '0') }
  const end = to === undefined ? { at: now, last: null, beyond: true } : endOf(to)
  // The first row of a window may have been the last of a page: then what is left is empty.
  const slack = end.last === null && end.beyond ? 0 : 1
  if (start.at > end.at + slack) {
    const hint = to === undefined ? 'Without to the span ends now' : 'from is the earlier end'
    throw new Refusal('invalid', 'from lies after to', hint)
  }
  return { from: start, to: { at: end.at, last: end.last }, beyond: end.beyond }
}

function endOf(text: string): AskedWindow['to'] & Pick<AskedWindow, 'beyond'> {
  const at = momentAfter(inMilliseconds(text)) - 1
  const digits = fractionOf(text).length
  if (digits <= 3) return { at, last: null, beyond: true }
  const nanoseconds = nanosecondsOf(text, '9')
  if (digits !== 9 || nanoseconds < closedFrom) return { at, last: nanoseconds, beyond: true }
  const last = nanoseconds === nanosecondsMax ? null : nanoseconds - closedFrom
  return { at, last, beyond: false }
}

/** The end of what comes before a row: `row` is its number in its millisecond. */
export function endBefore({ at }: Position, row: number, beyond: boolean): string {
  if (row === 0) return isoWith(at - 1, nanosecondsMax)
  const closed = closedFrom + row - 1
  return isoWith(at, beyond || closed >= nanosecondsMax ? row - 1 : closed)
}

/** The beginning of what comes after a row. */
export const beginAfter = ({ at }: Position, row: number): string => isoWith(at, row + 1)

function isoWith(at: number, nanoseconds: number): string {
  const digits = String(Math.min(nanoseconds, nanosecondsMax)).padStart(6, '0')
  return `${new Date(at).toISOString().slice(0, -1)}${digits}Z`
}

const fractionOf = (text: string): string => /\.(\d+)/.exec(text)?.[1] ?? ''

/** Date reads no more than nine digits rightly. */
const inMilliseconds = (text: string): string => text.replace(/(\.\d{3})\d+/, '$1')

/** What a time says below the millisecond; `fill` stands for the digits it leaves open. */
function nanosecondsOf(text: string, fill: '0' | '9'): number {
  const digits = fractionOf(text).slice(3, 9)
  return digits === '' && fill === '0' ? 0 : Number(digits.padEnd(6, fill))
}

/** Earlier rows first. */
export const byPosition = (a: Position, b: Position): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Whether a position lies in a window. */
export function isWithin({ from, to }: TimeWindow, { at, id }: Position): boolean {
  if (at < from.at || at > to.at) return false
  if (at === from.at && from.id !== undefined && id < from.id) return false
  return !(at === to.at && to.id !== undefined && id > to.id)
}
