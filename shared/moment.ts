const dayMs = 24 * 3600 * 1000

const dateOnly = /^\d{4}-\d\d-\d\d$/
const zoned = /(?:z|[+-]\d\d:?\d\d)$/i

/** The start of what a client names: a day begins at midnight UTC; a time without a zone is UTC. */
export const momentFrom = (text: string): number =>
  Date.parse(dateOnly.test(text) || zoned.test(text) ? text : `${text}Z`)

/** The first millisecond after what a client names: a day counts whole, a point in time itself. */
export const momentAfter = (text: string): number =>
  dateOnly.test(text) ? momentFrom(text) + dayMs : momentFrom(text) + 1
