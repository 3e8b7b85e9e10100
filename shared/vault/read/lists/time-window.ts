import { reversedSpan } from '#shared/core/refusals.ts'
import type { Span } from '#shared/domain/lease.ts'
import { requireKnown } from '#shared/vault/read/search/as-of.ts'
import { momentText, parseExclusiveEnd, parseStart, type Moment } from '#shared/core/dates.ts'

/** The position of a row in time: epoch milliseconds, and its id among rows of the same millisecond. */
export type TimelinePosition = { at: number; id: string }

/** A span of time in whole milliseconds, both ends included. */
export type TimeWindow = {
  from: number
  to: number
  /** The moment of a window as of it: overlapping reflections of a later time (epoch ms) were unknown then. */
  asOf?: number
}

/**
 * The span between two times of a client, both included: a date is the whole day. Finer times than milliseconds
 * are rounded inwards. A span that has not begun yet is empty.
 *
 * @throws Refusal `invalid` when it ends before it begins.
 */
export function parseTimeWindow(from: Moment, to: Moment | undefined, now: number): TimeWindow {
  const text = momentText(from)
  const start = parseStart(from) + (isFinerThanMilliseconds(text) ? 1 : 0)
  if (to === undefined) return { from: start, to: now }
  const end = parseExclusiveEnd(to) - 1
  // A page may have ended with the last row of the window: the rest is empty, and begins 1 ms after its end.
  const isOfPage = /\.\d{3}/.test(text) || /\.\d{3}/.test(momentText(to))
  if (start > end + (isOfPage ? 1 : 0)) {
    throw reversedSpan('from', 'to', 'from is the earlier end')
  }
  return { from: start, to: end }
}

/**
 * The part of a span that was known at a moment, in epoch milliseconds.
 *
 * @throws Refusal `invalid` when the span begins later.
 */
export function windowAsOf(window: TimeWindow, asOf: number | undefined): TimeWindow {
  if (asOf === undefined) return window
  requireKnown(window.from, asOf)
  return { ...window, to: Math.min(window.to, asOf), asOf }
}

const isFinerThanMilliseconds = (text: string): boolean => /\.\d{3}0*[1-9]/.test(text)

/**
 * Where a reflection stands in a window, in epoch milliseconds: oldest first at the end of its period, newest first at its
 * beginning, or at the end of the window that is passed first. A client that goes on moves the other end, so a reflection
 * keeps its place on all pages.
 */
export const placeOfReflection = (
  { at, covers }: { at: number; covers: Span | null },
  window: TimeWindow,
  oldestFirst: boolean,
): number => (oldestFirst ? Math.min(at, window.to) : Math.max(covers?.from ?? at, window.from))

/** Earlier rows first. */
export const comparePositions = (a: TimelinePosition, b: TimelinePosition): number =>
  a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** Whether a position lies in a window. */
export const isWithin = ({ from, to }: TimeWindow, { at }: TimelinePosition): boolean =>
  at >= from && at <= to
