import { languages } from '#shared/search/languages/languages.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

const DAY_MS = 86_400_000

/** Event times from `from` until before `to`, epoch milliseconds. */
export type TimeSpan = { from: number; to: number }

const months: ReadonlyMap<string, number> = new Map(
  [...languages.values()].flatMap(({ months = [] }) =>
    months.flatMap((names, month) =>
      names.split(' ').map(name => [foldText(name), month] as const),
    ),
  ),
)

/** Returns the month of a name in any language, from 0 for January. Case and accents do not matter. */
export const monthOf = (name: string): number | undefined => months.get(foldText(name))

const weekdays: ReadonlyMap<string, number> = new Map(
  [...languages.values()].flatMap(({ weekdays = [] }) =>
    weekdays.map((name, day) => [name, day] as const),
  ),
)

/** Returns the day of a name, from 0 for Sunday, in English, the one language that has them. */
export const weekdayOf = (name: string): number | undefined => weekdays.get(name.toLowerCase())

/** The first month, from 0, of each season of the northern hemisphere. */
export const seasons: Readonly<Record<string, number>> = Object.fromEntries(
  [...languages.values()].flatMap(language => Object.entries(language.seasons ?? {})),
)

/** A UTC day is extended by what zones are ahead of UTC and behind it, 14 and 12 hours: those of users are unknown. */
const aheadMs = (14 / 24) * DAY_MS
const behindMs = DAY_MS / 2

/** Returns `days` days from a UTC day on. */
function daySpan(year: number, month: number, day: number, days = 1): TimeSpan {
  const start = Date.UTC(year, month, day)
  return { from: start - aheadMs, to: start + days * DAY_MS + behindMs }
}

export function monthSpan(year: number, month: number, count = 1): TimeSpan {
  return {
    from: Date.UTC(year, month, 1) - aheadMs,
    to: Date.UTC(year, month + count, 1) + behindMs,
  }
}

export function yearSpan(year: number): TimeSpan {
  return monthSpan(year, 0, 12)
}

/** Returns `days` whole days that end `ago` days before `now`. */
export function lastDaysSpan(now: number, days: number, ago = 0): TimeSpan {
  const { year, month, day } = utcDateOf(now)
  return daySpan(year, month, day - ago - days + 1, days)
}

/** Returns the calendar week, Monday to Sunday, that lies `ago` weeks back. */
export function weekSpan(now: number, ago: number): TimeSpan {
  const { year, month, day } = utcDateOf(now)
  const sinceMonday = (new Date(now).getUTCDay() + 6) % 7
  return daySpan(year, month, day - sinceMonday - 7 * ago, 7)
}

export function utcDateOf(now: number): { year: number; month: number; day: number } {
  const date = new Date(now)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate() }
}

/** A month or day without a year stands for that of each of so many last years. */
const yearsBack = 12

export function recentYears(now: number): number[] {
  const { year } = utcDateOf(now)
  return Array.from({ length: yearsBack }, (_, i) => year - i)
}

export function isYear(value: number): boolean {
  return value >= 1970 && value <= 2100
}

/** Parses a day; none for one that its month does not have: of 29 February without a year leap years are left. */
export function parseDay(
  yearText: string | undefined,
  month: number,
  dayText: string | undefined,
): TimeSpan[] {
  const [year, day] = [Number(yearText), Number(dayText)]
  const read = utcDateOf(Date.UTC(year, month, day))
  return isYear(year) && read.month === month && read.day === day ? [daySpan(year, month, day)] : []
}

export function parseDayOfRecentYears(
  yearText: string | undefined,
  month: number | undefined,
  dayText: string | undefined,
  now: number,
): TimeSpan[] {
  if (month === undefined) return []
  if (yearText) return parseDay(yearText, month, dayText)
  return recentYears(now).flatMap(year => parseDay(String(year), month, dayText))
}

/** Parses the days from one to another of a month: "between 1 and 7 July 2026". */
export function parseDayRange(
  yearText: string | undefined,
  month: number | undefined,
  [first, last]: readonly (string | undefined)[],
  now: number,
): TimeSpan[] {
  if (month === undefined || Number(first) > Number(last)) return []
  const years = yearText ? [yearText] : recentYears(now).map(String)
  return years.flatMap(year => {
    const [from] = parseDay(year, month, first)
    const [to] = parseDay(year, month, last)
    return from && to ? [{ from: from.from, to: to.to }] : []
  })
}

/** Parses the days from one to another; the last may be of the next year: "30 December to 2 January". */
export function parseRangeOfMonths(
  [firstDay, firstMonth, firstYear]: readonly (string | undefined)[],
  [lastDay, lastMonth, lastYear]: readonly (string | undefined)[],
  now: number,
): TimeSpan[] {
  const [from, to] = [monthOf(firstMonth ?? ''), monthOf(lastMonth ?? '')]
  if (from === undefined || to === undefined) return []
  const yearsLater = to < from || (to === from && Number(lastDay) < Number(firstDay)) ? 1 : 0
  const known = Number(firstYear) || (lastYear ? Number(lastYear) - yearsLater : undefined)
  return (known === undefined ? recentYears(now) : [known]).flatMap(year => {
    const [first] = parseDay(String(year), from, firstDay)
    const [last] = parseDay(lastYear || String(year + yearsLater), to, lastDay)
    return first && last && first.from < last.to ? [{ from: first.from, to: last.to }] : []
  })
}
