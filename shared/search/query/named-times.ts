import {
  dateOf,
  daysFrom,
  lastDays,
  monthOf,
  monthSpan,
  seasons,
  weekdayOf,
  weekSpan,
  yearSpan,
  type Span,
} from '#shared/search/query/calendar.ts'

/** A month or day without a year may be of any of the last years. */
const yearsBack = 12
const spansMax = 32

/** More words than this are a text, not a question: its dates are not what is asked for. */
const charactersMax = 400

/**
 * The times a question names, absolute ("3 May 2023", "2023-05-07", "in March", "2022", "summer of
 * 2021") or seen from `now` ("yesterday", "last week", "two months ago", "on Friday"), as spans of
 * epoch milliseconds; `rest` is the question without them. None when it names none. A day has half a day of slack on both sides, since
 * nobody lives by UTC; a date without a year stands for that day of each of the last years.
 */
export function timesNamedIn(question: string, now: number): { spans: Span[]; rest: string } {
  const spans: Span[] = []
  if (question.length > charactersMax) return { spans, rest: question }
  let rest = question
  for (const { pattern, read } of readers) {
    rest = rest.replace(pattern, (...match) => {
      const groups = match.slice(0, -2).map(group => (typeof group === 'string' ? group : ''))
      const found = read(groups, now)
      // What is understood is taken out: "May 2023" is not also "2023".
      if (found.length === 0) return match[0]
      spans.push(...found)
      return ' '
    })
  }
  return { spans: spans.slice(0, spansMax), rest }
}

type Reader = { pattern: RegExp; read: (groups: string[], now: number) => Span[] }

const word = '(\\p{L}{3,12})'
const day = '(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?'
const year = '(\\d{4})'
const count = '(an?|one|two|three|four|five|six|seven|eight|nine|ten|a few|a couple of|\\d{1,3})'
const unit = '(day|week|month|year)s?'

const readers: readonly Reader[] = [
  reader(`\\b${year}[-/.](\\d{1,2})[-/.](\\d{1,2})\\b`, ([, y, m, d]) =>
    dayOf(y, Number(m) - 1, d),
  ),
  reader('(\\d{4})年(?:(\\d{1,2})月)?(?:(\\d{1,2})日)?', ([, y, m, d]) =>
    d ? dayOf(y, Number(m) - 1, d) : m ? monthIn(y, Number(m) - 1) : yearOf(y),
  ),
  reader(`\\b${day} (?:of |de )?${word},?(?: (?:of |de )?${year})?(?!\\p{L})`, ([, d, m, y], now) =>
    dayOrDays(y, monthOf(m ?? ''), d, now),
  ),
  reader(`(?<!\\p{L})${word} ${day}(?!\\d|:)(?:,? ${year})?`, ([, m, d, y], now) =>
    dayOrDays(y, monthOf(m ?? ''), d, now),
  ),
  reader(`(?<!\\p{L})${word},?(?: of| de)? ${year}\\b`, ([, m, y]) => partOf(m, Number(y))),
  reader(`\\b${count} ${unit} (?:ago|back|before now)\\b`, ([, n, u], now) =>
    ago(numberOf(n), u, now),
  ),
  reader(`\\b(?:last|past|previous) ${count} ${unit}\\b`, ([, n, u], now) => [
    lastDays(now, Math.ceil(numberOf(n) * daysIn(u))),
  ]),
  reader(
    '\\b(last|past|previous|this) (week|weekend|month|year|night|spring|summer|autumn|fall|winter)\\b',
    ([, which, what], now) => relative(which === 'this' ? 0 : 1, what ?? '', now),
  ),
  reader('\\b(?:yesterday|gestern|ayer|ieri|ontem|вчера|dün)\\b|昨天|昨日|어제|أمس', (_, now) => [
    lastDays(now, 1, 1),
  ]),
  reader(
    '\\b(?:today|tonight|this morning|heute|hoy|oggi|hoje|сегодня)\\b|今天|今日|오늘',
    (_, now) => [lastDays(now, 1)],
  ),
  reader('\\b(?:last|on|this|past) (\\p{L}{6,9})s?\\b', ([, name], now) => weekday(name, now)),
  reader(
    `\\b(?:in|during|since|until|till|of|by|from|last|this|early|late|mid|en|im|em|nel|в) ${word}(?!\\p{L}|[-–])`,
    ([, m], now) => everyYear(m, now),
  ),
  reader('\\b((?:19|20)\\d\\d)\\b(?![.,:/-]\\d)', ([, y]) => yearOf(y)),
]

function reader(pattern: string, read: Reader['read']): Reader {
  // A boundary beside letters of any script; `\b` knows ASCII alone.
  const source = pattern.replace(/^\\b/, '(?<![\\p{L}\\d])').replace(/\\b$/, '(?![\\p{L}\\d])')
  return { pattern: new RegExp(source, 'giu'), read }
}

function isYear(value: number): boolean {
  return value >= 1970 && value <= 2100
}

function yearOf(text: string | undefined): Span[] {
  return isYear(Number(text)) ? [yearSpan(Number(text))] : []
}

function monthIn(yearText: string | undefined, month: number): Span[] {
  return isYear(Number(yearText)) && month >= 0 && month < 12
    ? [monthSpan(Number(yearText), month)]
    : []
}

function dayOf(yearText: string | undefined, month: number, dayText: string | undefined): Span[] {
  const [year, day] = [Number(yearText), Number(dayText)]
  const exists = isYear(year) && month >= 0 && month < 12 && day >= 1 && day <= 31
  return exists ? [daysFrom(year, month, day)] : []
}

function dayOrDays(
  yearText: string | undefined,
  month: number | undefined,
  dayText: string | undefined,
  now: number,
): Span[] {
  if (month === undefined) return []
  if (yearText) return dayOf(yearText, month, dayText)
  return recentYears(now).flatMap(year => dayOf(String(year), month, dayText))
}

/** A month or a season of a year. */
function partOf(name: string | undefined, year: number): Span[] {
  if (!name || !isYear(year)) return []
  const season = seasons[name.toLowerCase()]
  if (season !== undefined) return [monthSpan(year, season, 3)]
  const month = monthOf(name)
  return month === undefined ? [] : [monthSpan(year, month)]
}

function everyYear(name: string | undefined, now: number): Span[] {
  return recentYears(now).flatMap(year => partOf(name, year))
}

function recentYears(now: number): number[] {
  const { year } = dateOf(now)
  return Array.from({ length: yearsBack }, (_, i) => year - i)
}

const numbers = 'zero one two three four five six seven eight nine ten'.split(' ')

function numberOf(text = ''): number {
  const known = numbers.indexOf(text.toLowerCase())
  if (known >= 0) return known
  if (/few/i.test(text)) return 3
  if (/couple/i.test(text)) return 2
  return /^an?$/i.test(text) ? 1 : Number(text)
}

function daysIn(unit = ''): number {
  return { day: 1, week: 7, month: 30.5, year: 365 }[unit.toLowerCase()] ?? 1
}

/** The further back, the less exact: a fifth of the distance on both sides. */
function ago(number: number, unit: string | undefined, now: number): Span[] {
  const days = number * daysIn(unit)
  const slack = Math.max(unit === 'day' ? 0 : daysIn(unit) / 2, days / 5)
  return [lastDays(now, Math.ceil(2 * slack + 1), Math.floor(days - slack))]
}

function relative(back: number, what: string, now: number): Span[] {
  const { year, month } = dateOf(now)
  if (what === 'night') return [lastDays(now, 2)]
  if (what === 'week') return [weekSpan(now, back)]
  if (what === 'weekend') {
    const week = weekSpan(now, back)
    return [{ from: week.to - 3 * 86_400_000, to: week.to }]
  }
  if (what === 'month') return [monthSpan(year, month - back)]
  if (what === 'year') return [yearSpan(year - back)]
  const first = seasons[what] ?? 0
  // Last summer, asked in spring, is that of the year before; asked in autumn, of this one.
  const over = first + 3 <= month
  return [monthSpan(year - (back === 1 && !over ? 1 : 0), first, 3)]
}

function weekday(name: string | undefined, now: number): Span[] {
  const day = weekdayOf(name ?? '') ?? weekdayOf((name ?? '').replace(/s$/, ''))
  if (day === undefined) return []
  const back = (new Date(now).getUTCDay() - day + 7) % 7 || 7
  return [lastDays(now, 1, back)]
}
