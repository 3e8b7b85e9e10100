const dayMs = 24 * 3600 * 1000

const dateOnly = /^\d{4}-\d\d-\d\d$/
const zoneSuffix = /(?:z|[+-]\d\d:?\d\d)$/i

/** The start of what a client names: a day begins at midnight UTC; a time without a zone is UTC. */
export const parseStart = (text: string): number =>
  Date.parse(dateOnly.test(text) || zoneSuffix.test(text) ? text : `${text}Z`)

/** The first millisecond after what a client names: a day counts whole, a point in time itself. */
export const parseExclusiveEnd = (text: string): number =>
  dateOnly.test(text) ? parseStart(text) + dayMs : parseStart(text) + 1

/** A time with its seconds, which ISO 8601 lets out where they are none. */
export const addMissingSeconds = (text: string): string =>
  text.replace(/([t\s]\d\d:\d\d)(?=z|[+-]|$)/i, '$1:00')

const [earliest, latest] = ['0000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'].map(Date.parse)

/**
 * Whether a time can be read and written again: in UTC it has a year of four digits. One at the end of
 * the years may leave them by its zone.
 */
export function isRepresentable(text: string): boolean {
  const at = parseStart(text)
  return at >= earliest! && at <= latest!
}
