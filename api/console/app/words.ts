const numbers = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full' })
const shortDay = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const time = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' })

export const count = (value: number): string => numbers.format(value)
export const brief = (value: number): string => compact.format(value)
export const percent = (share: number): string => `${Math.round(share * 100)} %`

/** `1 memory`, `2 memories`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

export type Moment = string | number | Date

export const dayOf = (moment: Moment): string => day.format(new Date(moment))
export const shortDayOf = (moment: Moment): string => shortDay.format(new Date(moment))
export const timeOf = (moment: Moment): string => time.format(new Date(moment))
export const momentOf = (moment: Moment): string => `${shortDayOf(moment)}, ${timeOf(moment)}`
export const isoOf = (moment: Moment): string => new Date(moment).toISOString()

/** `3 May 2026` or `1 – 3 May 2026`, for a span of time. */
export const spanOf = ({ from, to }: { from: string; to: string }): string =>
  shortDay.formatRange(new Date(from), new Date(to))

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365 * 24 * 3600],
  ['month', 30 * 24 * 3600],
  ['day', 24 * 3600],
  ['hour', 3600],
  ['minute', 60],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

/** `3 days ago`, or `in 3 days`. */
export function agoOf(moment: Moment): string {
  const seconds = (new Date(moment).getTime() - Date.now()) / 1000
  const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? ['minute', 60]
  return Math.abs(seconds) < 60 ? 'just now' : relative.format(Math.round(seconds / size), unit)
}

/** A moment as a field for date and time takes it: local, to the minute. */
export function inputMomentOf(moment: Moment): string {
  const at = new Date(moment)
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

export const bytesOf = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
