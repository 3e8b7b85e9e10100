const dayMs = 24 * 3600 * 1000

const dateOnly = /^\d{4}-\d\d-\d\d$/
const zoneSuffix = /(?:z|[+-]\d\d:?\d\d)$/i

/** A client's date or time in ISO 8601, or its milliseconds since 1970. */
export type Moment = string | number

/**
 * The start of a client's date or time in epoch milliseconds: a day begins at midnight UTC; a time without
 * a zone is UTC; fractions of a millisecond are cut off.
 */
export function parseStart(moment: Moment): number {
  if (typeof moment === 'number') return Math.trunc(moment) || 0
  const text = truncateToMilliseconds(moment)
  return Date.parse(dateOnly.test(text) || zoneSuffix.test(text) ? text : `${text}Z`)
}

/** The first millisecond after a client's date or time: a day is included whole. */
export const parseExclusiveEnd = (moment: Moment): number =>
  typeof moment === 'string' && dateOnly.test(moment)
    ? parseStart(moment) + dayMs
    : parseStart(moment) + 1

/** The text of a client's time: a number of milliseconds becomes ISO 8601. */
export const momentText = (moment: Moment): string =>
  typeof moment === 'number' ? new Date(parseStart(moment)).toISOString() : moment

/** `Date` does not parse more than nine digits of a second correctly. */
const truncateToMilliseconds = (text: string): string => text.replace(/(\.\d{3})\d+/, '$1')

/** Adds the seconds, which ISO 8601 allows to omit. */
export const addMissingSeconds = (text: string): string =>
  text.replace(/([t\s]\d\d:\d\d)(?=z|[+-]|$)/i, '$1:00')

const [earliest, latest] = ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'].map(Date.parse)

/**
 * Whether a time survives being written and read again: in UTC its year has four digits. A zone can
 * move a time at the end of the range out of it.
 */
export function isRepresentable(text: string): boolean {
  const at = parseStart(text)
  return at >= earliest! && at <= latest!
}
