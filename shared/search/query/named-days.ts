import { daySpan, monthOf, utcDateOf, type TimeSpan } from '#shared/search/query/calendar.ts'

/** A month or day without a year stands for that of each of the last years. */
const yearsBack = 12

export function recentYears(now: number): number[] {
  const { year } = utcDateOf(now)
  return Array.from({ length: yearsBack }, (_, i) => year - i)
}

export function isYear(value: number): boolean {
  return value >= 1970 && value <= 2100
}

export function parseDay(
  yearText: string | undefined,
  month: number,
  dayText: string | undefined,
): TimeSpan[] {
  const [year, day] = [Number(yearText), Number(dayText)]
  const exists = isYear(year) && month >= 0 && month < 12 && day >= 1 && day <= 31
  return exists ? [daySpan(year, month, day)] : []
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

/** The days from one to another of a month: "between 1 and 7 July 2026". */
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

/** Day, month and year as they stand in the text; the year may be empty. */
type NamedDay = readonly (string | undefined)[]

/** The days from one to another, of the next year where its month comes first: "30 December to 2 January". */
export function parseRangeOfMonths(
  [firstDay, firstMonth, firstYear]: NamedDay,
  [lastDay, lastMonth, lastYear]: NamedDay,
  now: number,
): TimeSpan[] {
  const [from, to] = [monthOf(firstMonth ?? ''), monthOf(lastMonth ?? '')]
  if (from === undefined || to === undefined) return []
  const later = to < from || (to === from && Number(lastDay) < Number(firstDay)) ? 1 : 0
  const known = Number(firstYear) || (lastYear ? Number(lastYear) - later : undefined)
  return (known === undefined ? recentYears(now) : [known]).flatMap(year => {
    const [first] = parseDay(String(year), from, firstDay)
    const [last] = parseDay(lastYear || String(year + later), to, lastDay)
    return first && last && first.from < last.to ? [{ from: first.from, to: last.to }] : []
  })
}
