const numbers = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full' })
const shortDay = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const utcDay = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })
const time = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' })
const dayTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

export const formatCount = (value: number): string => numbers.format(value)
export const formatCompact = (value: number): string => compact.format(value)
export const formatPercent = (share: number): string => `${Math.round(share * 100)} %`

const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' })

const smallDollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  maximumSignificantDigits: 2,
})

/** To the cent, below a cent to its second digit (`$0.00041`); null is an amount that is not known. */
export const formatCost = (cost: number | null): string =>
  cost === null ? 'no price' : (cost > 0 && cost < 0.01 ? smallDollars : dollars).format(cost)

/** `1 memory`, `2 memories`. */
export const pluralize = (value: number, one: string, many = `${one}s`): string =>
  `${formatCount(value)} ${value === 1 ? one : many}`

export type DateLike = string | number | Date

export const formatDay = (moment: DateLike): string => day.format(new Date(moment))
export const formatShortDay = (moment: DateLike): string => shortDay.format(new Date(moment))
/** Formats a day that is counted in UTC, as `2026-05-03` or its first moment: the same everywhere. */
export const formatUtcDay = (day: DateLike): string => utcDay.format(new Date(day))
export const formatTime = (moment: DateLike): string => time.format(new Date(moment))
/** `27 Nov, 16:14`; of another year the day alone. */
export const formatDayTime = (moment: DateLike): string =>
  new Date(moment).getFullYear() === new Date().getFullYear()
    ? dayTime.format(new Date(moment))
    : formatShortDay(moment)
export const formatDateTime = (moment: DateLike): string =>
  `${formatShortDay(moment)}, ${formatTime(moment)}`
export const dayMs = 24 * 3600 * 1000
/** The day of a time in UTC, as `2026-05-03`. */
export const isoDay = (moment: DateLike): string => toIsoString(moment).slice(0, 10)
export const toIsoString = (moment: DateLike): string => new Date(moment).toISOString()

/** `3 May 2026` or `1 – 3 May 2026`, for a span of time. */
export const formatDateRange = ({ from, to }: { from: string; to: string }): string =>
  shortDay.formatRange(new Date(from), new Date(to))

/** A unit, its seconds, and from how many of them it is used. */
const relativeUnits: [Intl.RelativeTimeFormatUnit, seconds: number, least: number][] = [
  ['year', 365 * 24 * 3600, 2],
  ['month', 30 * 24 * 3600, 1],
  ['day', 24 * 3600, 1],
  ['hour', 3600, 1],
  ['minute', 60, 1],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** `3 days ago`, of which the last is complete, or `in 3 days`, to the nearest. */
export function formatRelativeTime(moment: DateLike, now = Date.now()): string {
  const seconds = (new Date(moment).getTime() - now) / 1000
  const found = relativeUnits.find(([, size, least]) => Math.abs(seconds) >= size * least)
  if (!found) return 'just now'
  const [unit, size] = found
  return relative.format(seconds < 0 ? Math.ceil(seconds / size) : Math.round(seconds / size), unit)
}

const durationUnits: [name: string, seconds: number][] = [
  ['d', 24 * 3600],
  ['h', 3600],
  ['min', 60],
]

/** `40 s`, `3 min`, `2 h`, `5 d`. */
export function formatSeconds(seconds: number): string {
  const [unit, size] = durationUnits.find(([, size]) => seconds >= size) ?? ['s', 1]
  return `${formatCount(Math.floor(seconds / size))} ${unit}`
}

/** Since when a key exists, and when it was last used. */
export const describeUse = (createdAt: DateLike, lastUsedAt: DateLike | null): string =>
  `Since ${formatShortDay(createdAt)}, ${lastUsedAt === null ? 'never used' : `used ${formatRelativeTime(lastUsedAt)}`}`

/** A time as the value of a `datetime-local` field: local, to the minute. */
export function toDateTimeInput(moment: DateLike): string {
  const at = new Date(moment)
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

export const formatBytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
