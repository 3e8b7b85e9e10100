import { dayMs, formatUtcDay, isoDay } from '#api/console/app/format.ts'
import type { DayCount } from '#api/contract/generated/types.ts'

/** The memories of a day, a week or a month. */
export type Bucket = {
  /** The first and last day, as `YYYY-MM-DD`. */
  from: string
  to: string
  label: string
  raw: number
  reflections: number
}

export type Buckets = { unit: 'day' | 'week' | 'month'; buckets: Bucket[] }

/** Bars that a phone can still show. */
const bucketsMax = 60
const month = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })

const dayOf = (name: string): number => Math.floor(Date.parse(name) / dayMs)

/** Sums days into bars of equal units without gaps: days, weeks or months, whichever is at most sixty. */
export function bucketDays(days: readonly DayCount[]): Buckets {
  const [first, last] = [days[0], days.at(-1)]
  if (!first || !last) return { unit: 'day', buckets: [] }
  const span = dayOf(last.day) - dayOf(first.day) + 1
  if (span <= bucketsMax) return { unit: 'day', buckets: evenBuckets(days, 1) }
  if (span <= bucketsMax * 7) return { unit: 'week', buckets: evenBuckets(days, 7) }
  return { unit: 'month', buckets: monthBuckets(days).slice(-bucketsMax) }
}

/** Bars of a number of days; weeks begin on Monday. */
function evenBuckets(days: readonly DayCount[], size: 1 | 7): Bucket[] {
  // Day 4 of the epoch was a Monday.
  const start = (day: number): number => (size === 1 ? day : Math.floor((day - 4) / 7) * 7 + 4)
  const begin = start(dayOf(days[0]!.day))
  const end = start(dayOf(days.at(-1)!.day))
  const buckets = Array.from({ length: (end - begin) / size + 1 }, (_, index): Bucket => {
    const at = (begin + index * size) * dayMs
    const from = isoDay(at)
    const label = size === 1 ? formatUtcDay(from) : `Week of ${formatUtcDay(from)}`
    return { from, to: isoDay(at + (size - 1) * dayMs), label, raw: 0, reflections: 0 }
  })
  for (const day of days) add(buckets[(start(dayOf(day.day)) - begin) / size]!, day)
  return buckets
}

function monthBuckets(days: readonly DayCount[]): Bucket[] {
  const numberOf = (name: string): number =>
    Number(name.slice(0, 4)) * 12 + Number(name.slice(5, 7))
  const begin = numberOf(days[0]!.day)
  const length = numberOf(days.at(-1)!.day) - begin + 1
  const buckets = Array.from({ length }, (_, index): Bucket => {
    const number = begin + index - 1
    const year = Math.floor(number / 12)
    const at = Date.UTC(year, number % 12)
    const end = Date.UTC(year, (number % 12) + 1, 0)
    return { from: isoDay(at), to: isoDay(end), label: month.format(at), raw: 0, reflections: 0 }
  })
  for (const day of days) add(buckets[numberOf(day.day) - begin]!, day)
  return buckets
}

function add(bucket: Bucket, { raw, reflections }: DayCount): void {
  bucket.raw += raw
  bucket.reflections += reflections
}
