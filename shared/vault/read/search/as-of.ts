import { refusal } from '#shared/core/refusal.ts'
import { parseExclusiveEnd, type Moment } from '#shared/core/dates.ts'

/** The last millisecond of a client's moment: a day counts whole. */
export const parseAsOf = (moment: Moment | undefined): number | undefined =>
  moment === undefined ? undefined : parseExclusiveEnd(moment) - 1

/**
 * The moment that counts as now: the one as of which is asked, or the present.
 *
 * @param asOf epoch milliseconds
 */
export const momentOf = ({ now }: { now: () => number }, asOf: number | undefined): number =>
  asOf === undefined ? now() : Math.min(asOf, now())

/** The bound of event times, exclusive, of what was known at a moment; none without one. */
export const boundsAsOf = (asOf: number | undefined): { to?: number } =>
  asOf === undefined ? {} : { to: asOf + 1 }

/** @throws Refusal `invalid` for a span that begins after what was known. */
export function requireKnown(from: number, asOf: number): void {
  if (from <= asOf) return
  throw refusal('invalid', 'fromAfterAsOf')
}
