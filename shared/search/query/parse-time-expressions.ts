import {
  isYear,
  lastDaysSpan,
  monthOf,
  monthSpan,
  parseDay,
  parseDayOfRecentYears,
  parseDayRange,
  parseRangeOfMonths,
  recentYears,
  seasons,
  utcDateOf,
  weekdayOf,
  weekSpan,
  yearSpan,
  type TimeSpan,
} from '#shared/search/query/calendar.ts'
import { alternativesOf, wordsOf } from '#shared/search/languages/languages.ts'

const spansMax = 32

/** Characters beyond which a query is a text, whose dates are not what is asked for. */
const queryLengthMax = 400

/**
 * Parses the times that a query names, absolute ("3 May 2023", "2023-05-07", "in March", "2022", "summer of 2021") or
 * relative to `now` ("yesterday", "last week", "two months ago", "on Friday"). Relative times but single days are
 * understood in English. Spans are epoch milliseconds, wide enough for every time zone; a date without a year stands
 * for that day of each of the last years. `rest` is the query without them.
 */
export function parseTimeExpressions(
  query: string,
  now: number,
): { spans: TimeSpan[]; rest: string } {
  const spans: TimeSpan[] = []
  if (query.length > queryLengthMax) return { spans, rest: query }
  let rest = query
  for (const { isPossible, pattern, parse } of timeParsers) {
    if (!isPossible(query)) continue
    rest = rest.replace(pattern, (...match) => {
      const groups = match.slice(0, -2).map(group => (typeof group === 'string' ? group : ''))
      const parsed = parse(groups, now)
      if (parsed.length === 0) return match[0]
      // Removed from the rest: "May 2023" is not also "2023".
      spans.push(...parsed)
      return ' '
    })
  }
  return { spans: spans.slice(0, spansMax), rest }
}

type TimeParser = {
  /**
   * Whether a query has what the pattern needs. A pattern for letters of all scripts takes milliseconds to compile, and
   * the engine drops those that are not used for a while.
   */
  isPossible: (query: string) => boolean
  pattern: RegExp
  parse: (groups: string[], now: number) => TimeSpan[]
}

const rangeWords = wordsOf('rangeWords').join('|')
const dateOf = `(?:${wordsOf('dateOf').join('|')})`
const wordPattern = '(\\p{L}{3,12})'
const dayPattern = '(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?'
/** Words between the first and the last day of a span in one month. */
const rangePattern = `(?:and|${rangeWords}|[-–])`
const yearPattern = '(\\d{4})'
/** From one day of a year to another; "and" alone names two days. */
const fromToPattern = (day: string): string =>
  `${day}(?:,? ${yearPattern})? ?(?:${rangeWords}|[-–]|(?<=\\bbetween .{5,30})and) ?${day}(?:,? ${yearPattern})?`
const countPattern =
  '(an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|a couple of|\\d{1,3})'
const unitPattern = '(day|week|month|year)s?'

const hasUnit = (query: string): boolean => /day|week|month|year/i.test(query)
const hasDigit = (query: string): boolean => /\d/.test(query)
const hasYear = (query: string): boolean => /\d{4}/.test(query)

/** The last query, and whether it names a month or a season: several patterns ask. */
let lastQuery = ''
let lastHasMonth = false
function hasMonth(query: string): boolean {
  if (query === lastQuery) return lastHasMonth
  lastQuery = query
  const words = query.match(/\p{L}{3,}/gu) ?? []
  lastHasMonth = words.some(word => monthOf(word) !== undefined || word.toLowerCase() in seasons)
  return lastHasMonth
}
const hasDayOfMonth = (query: string): boolean => hasDigit(query) && hasMonth(query)

const timeParsers: readonly TimeParser[] = [
  createTimeParser(
    `\\b${yearPattern}[-/.](\\d{1,2})[-/.](\\d{1,2})\\b`,
    ([, y, m, d]) => parseDay(y, Number(m) - 1, d),
    hasYear,
  ),
  createTimeParser(
    '(\\d{4})年(?:(\\d{1,2})月)?(?:(\\d{1,2})日)?',
    ([, y, m, d]) =>
      d ? parseDay(y, Number(m) - 1, d) : m ? parseMonth(y, Number(m) - 1) : parseYear(y),
    hasYear,
  ),
  createTimeParser(
    `\\b${fromToPattern(`${dayPattern} (?:of )?${wordPattern}`)}(?!\\p{L})`,
    ([, d, m, y, lastDay, lastMonth, lastYear], now) =>
      parseRangeOfMonths([d, m, y], [lastDay, lastMonth, lastYear], now),
  ),
  createTimeParser(
    `(?<!\\p{L})${fromToPattern(`${wordPattern} ${dayPattern}(?!\\d|:)`)}`,
    ([, m, d, y, lastMonth, lastDay, lastYear], now) =>
      parseRangeOfMonths([d, m, y], [lastDay, lastMonth, lastYear], now),
  ),
  createTimeParser(
    `\\b${dayPattern} ?${rangePattern} ?${dayPattern} (?:of )?${wordPattern},?(?: (?:of )?${yearPattern})?(?!\\p{L})`,
    ([, first, last, m, y], now) => parseDayRange(y, monthOf(m ?? ''), [first, last], now),
  ),
  createTimeParser(
    `(?<!\\p{L})${wordPattern} ${dayPattern} ?${rangePattern} ?${dayPattern}(?!\\d|:)(?:,? ${yearPattern})?`,
    ([, m, first, last, y], now) => parseDayRange(y, monthOf(m ?? ''), [first, last], now),
  ),
  createTimeParser(
    `\\b${dayPattern} (?:${dateOf} )?${wordPattern},?(?: (?:${dateOf} )?${yearPattern})?(?!\\p{L})`,
    ([, d, m, y], now) => parseDayOfRecentYears(y, monthOf(m ?? ''), d, now),
  ),
  createTimeParser(
    `(?<!\\p{L})${wordPattern} ${dayPattern}(?!\\d|:)(?:,? ${yearPattern})?`,
    ([, m, d, y], now) => parseDayOfRecentYears(y, monthOf(m ?? ''), d, now),
  ),
  createTimeParser(`(?<!\\p{L})${wordPattern},?(?: ${dateOf})? ${yearPattern}\\b`, ([, m, y]) =>
    parseMonthOrSeason(m, Number(y)),
  ),
  createTimeParser(
    `\\b${countPattern} ${unitPattern} (?:ago|back|before now)\\b`,
    ([, n, u], now) => spanAgo(parseNumber(n), u, now),
    hasUnit,
  ),
  createTimeParser(
    `\\b(?:last|past|previous) ${countPattern} ${unitPattern}\\b`,
    ([, n, u], now) => [lastDaysSpan(now, Math.ceil(parseNumber(n) * daysPerUnit(u)))],
    hasUnit,
  ),
  createTimeParser(
    '\\b(last|past|previous|this) (week|weekend|month|year|night|spring|summer|autumn|fall|winter)\\b',
    ([, which, what], now) => relativeSpan(which === 'this' ? 0 : 1, what ?? '', now),
    query => /week|month|year|night|spring|summer|autumn|fall|winter/i.test(query),
  ),
  createDayParser('yesterday', 1),
  createDayParser('today', 0),
  createTimeParser(
    '\\b(?:last|on|this|past) (\\p{L}{6,9})s?\\b',
    ([, name], now) => lastWeekday(name, now),
    query => /day/i.test(query),
  ),
  createTimeParser(
    `\\b(?:${wordsOf('timePrepositions').join('|')}) ${wordPattern}(?!\\p{L}|[-–])`,
    ([, m], now) => parseMonthOfRecentYears(m, now),
    hasMonth,
  ),
  createTimeParser('\\b((?:19|20)\\d\\d)\\b(?![.,:/-]\\d)', ([, y]) => parseYear(y), hasYear),
]

function createTimeParser(
  pattern: string,
  parse: TimeParser['parse'],
  isPossible: TimeParser['isPossible'] = hasDayOfMonth,
): TimeParser {
  // Boundaries for letters of any script; `\b` is for ASCII only.
  const source = pattern.replace(/^\\b/, '(?<![\\p{L}\\d])').replace(/\\b$/, '(?![\\p{L}\\d])')
  return { isPossible, pattern: new RegExp(source, 'giu'), parse }
}

/** Words for a whole day, `ago` days back. */
function createDayParser(list: 'yesterday' | 'today', ago: number): TimeParser {
  const spaced = alternativesOf(list, ({ boundaries }) => boundaries === true)
  const others = alternativesOf(list, ({ boundaries }) => !boundaries)
  const words = new RegExp(`${spaced}|${others}`, 'iu')
  return createTimeParser(
    `\\b(?:${spaced})(?![\\p{L}\\d])|${others}`,
    (_, now) => [lastDaysSpan(now, 1, ago)],
    query => words.test(query),
  )
}

function parseYear(text: string | undefined): TimeSpan[] {
  return isYear(Number(text)) ? [yearSpan(Number(text))] : []
}

function parseMonth(yearText: string | undefined, month: number): TimeSpan[] {
  return isYear(Number(yearText)) && month >= 0 && month < 12
    ? [monthSpan(Number(yearText), month)]
    : []
}

/** A month or a season of a year. */
function parseMonthOrSeason(name: string | undefined, year: number): TimeSpan[] {
  if (!name || !isYear(year)) return []
  const season = seasons[name.toLowerCase()]
  if (season !== undefined) return [monthSpan(year, season, 3)]
  const month = monthOf(name)
  return month === undefined ? [] : [monthSpan(year, month)]
}

function parseMonthOfRecentYears(name: string | undefined, now: number): TimeSpan[] {
  return recentYears(now).flatMap(year => parseMonthOrSeason(name, year))
}

const numberWords = 'zero one two three four five six seven eight nine ten'.split(' ')

function parseNumber(text = ''): number {
  const known = numberWords.indexOf(text.toLowerCase())
  if (known >= 0) return known
  if (/few/i.test(text)) return 3
  if (/couple/i.test(text)) return 2
  return /^an?$/i.test(text) ? 1 : Number(text)
}

function daysPerUnit(unit = ''): number {
  return { day: 1, week: 7, month: 30.5, year: 365 }[unit.toLowerCase()] ?? 1
}

/** Returns the span of a time ago, with slack of a fifth of the distance on both sides. */
function spanAgo(number: number, unit: string | undefined, now: number): TimeSpan[] {
  const days = number * daysPerUnit(unit)
  const slack = Math.max(unit === 'day' ? 0 : daysPerUnit(unit) / 2, days / 5)
  return [lastDaysSpan(now, Math.ceil(2 * slack + 1), Math.floor(days - slack))]
}

function relativeSpan(back: number, what: string, now: number): TimeSpan[] {
  const { year, month } = utcDateOf(now)
  if (what === 'night') return [lastDaysSpan(now, 2)]
  if (what === 'week') return [weekSpan(now, back)]
  if (what === 'weekend') {
    const week = weekSpan(now, back)
    return [{ from: week.from + 5 * 86_400_000, to: week.to }]
  }
  if (what === 'month') return [monthSpan(year, month - back)]
  if (what === 'year') return [yearSpan(year - back)]
  const first = seasons[what] ?? 0
  // A winter begins in the year before its January.
  const of = month < first - 9 ? year - 1 : year
  // In spring, "last summer" is that of the year before; in autumn, that of this year.
  const isPast = first + 3 <= month
  return [monthSpan(of - (back === 1 && !isPast ? 1 : 0), first, 3)]
}

function lastWeekday(name: string | undefined, now: number): TimeSpan[] {
  const day = weekdayOf(name ?? '') ?? weekdayOf((name ?? '').replace(/s$/, ''))
  if (day === undefined) return []
  const back = (new Date(now).getUTCDay() - day + 7) % 7 || 7
  return [lastDaysSpan(now, 1, back)]
}
