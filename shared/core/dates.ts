import { expiryPassed } from '#shared/core/refusals.ts'
const dayMs = 24 * 3600 * 1000

const dateOnly = /^\d{4}-\d\d-\d\d$/

/**
 * A day, or a day and a time: ISO 8601, also as databases write it, with a blank for the `T` and before the zone, and
 * a zone of hours alone (PostgreSQL's `+05`) or with seconds. `Date.parse` never gets a client's text: it reads `+05Z`
 * as UTC, 30 February as 2 March, `12` as the year 2001.
 */
const isoTime =
  /^(\d{4}-\d\d-\d\d)(?:[t ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(?: ?(?:z|utc|gmt|([+-]\d\d)(?::?(\d\d)(?::?(\d\d))?)?))?)?$/i

/** A client's date or time in ISO 8601, or its milliseconds since 1970. */
export type Moment = string | number

/**
 * The start of a client's date or time in epoch milliseconds: a day begins at midnight UTC; a time without
 * a zone is UTC; fractions of a millisecond are cut off. NaN for a text that is no time, such as 30 February.
 */
export function parseStart(moment: Moment): number {
  if (typeof moment === 'number') return Math.trunc(moment) || 0
  const read = isoTime.exec(moment)
  if (!read) return NaN
  const [, day, minute = '00:00', second = '00', fraction = '', ...zone] = read
  const midnight = Date.parse(`${day}T00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return NaN
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  return Date.parse(`${day}T${minute}:${second}.${milliseconds}Z`) - zoneOffset(zone)
}

/** Milliseconds by which a zone is ahead of UTC; NaN for one of 24 hours and more. */
function zoneOffset(zone: readonly (string | undefined)[]): number {
  const [hours = '+00', minutes = '00', seconds = '00'] = zone
  if (Math.abs(Number(hours)) > 23 || minutes > '59' || seconds > '59') return NaN
  const size = (Math.abs(Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)
  return size * (hours.startsWith('-') ? -1000 : 1000)
}

/** The first millisecond after a client's date or time: a day is included whole. */
export const parseExclusiveEnd = (moment: Moment): number =>
  typeof moment === 'string' && dateOnly.test(moment)
    ? parseStart(moment) + dayMs
    : parseStart(moment) + 1

/** Writes a client's time as text: milliseconds become ISO 8601. */
export const momentText = (moment: Moment): string =>
  typeof moment === 'number' ? new Date(parseStart(moment)).toISOString() : moment

const [earliest, latest] = ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'].map(Date.parse)

/** Whether a text is a day with a time whose year in UTC has four digits, so that it can be written again. */
export function isDateTime(text: string): boolean {
  const at = parseStart(text)
  return !dateOnly.test(text) && at >= earliest! && at <= latest!
}

/** Whether a time names its zone. */
export const hasZone = (text: string): boolean => /(?:z|utc|gmt|[+-]\d\d[\d:]*)$/i.test(text)

/** A moment that lies in the future; null when missing. @throws Refusal `invalid` for a past one. */
export function parseFutureDate(moment: Moment | undefined, now: number): Date | null {
  if (moment === undefined) return null
  const date = new Date(parseStart(moment))
  if (date.getTime() > now) return date
  throw expiryPassed()
}
