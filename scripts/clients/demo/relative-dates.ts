/**
 * The dates of the story are relative to the current day, so that "three months ago" is always true.
 * All dates are UTC.
 */

const dayMs = 24 * 3600 * 1000

const relativeDatePatterns: [RegExp, (now: Date, found: string[]) => number][] = [
  [
    /^(\d+) months? ago, day (\d+), (\d\d):(\d\d)$/,
    (now, [months, day, hour, minute]) =>
      startOfDay(now, -Number(months), Number(day)) + timeOfDayMs(hour, minute),
  ],
  [
    /^(\d+) days? ago, (\d\d):(\d\d)$/,
    (now, [days, hour, minute]) =>
      startOfDay(now, 0, now.getUTCDate() - Number(days)) + timeOfDayMs(hour, minute),
  ],
  [/^(\d+) minutes? ago$/, (now, [minutes]) => now.getTime() - Number(minutes) * 60_000],
]

/**
 * Parses a text such as `5 months ago, day 12, 07:10`, `4 days ago, 18:20` or `150 minutes ago`.
 *
 * @returns epoch milliseconds
 * @throws Error for any other text.
 */
export function parseRelativeDate(words: string, now: Date): number {
  for (const [pattern, moment] of relativeDatePatterns) {
    const match = pattern.exec(words)
    if (match) return moment(now, match.slice(1))
  }
  throw new Error(`Not a relative date: "${words}"`)
}

/**
 * Replaces the dates in braces: `{day 12, 6 months ago}` becomes "12 May",
 * `{2nd Saturday, 3 months ago}` "Saturday 8 August", `{day 20, in 1 month}` "20 December" and
 * `{month, 5 months ago}` "June".
 *
 * @throws Error for anything else in braces.
 */
export function fillDates(text: string, now: Date): string {
  return text.replaceAll(/\{([^}]*)\}/g, (_, words: string) => {
    const match = /^(.+), (?:(\d+) months? ago|in (\d+) months?)$/.exec(words)
    const formatted =
      match && resolveDate(match[1]!, now, match[2] ? -Number(match[2]) : Number(match[3]))
    if (!formatted) throw new Error(`Not a date: "{${words}}"`)
    return formatted
  })
}

function resolveDate(which: string, now: Date, months: number): string | undefined {
  const first = startOfDay(now, months, 1)
  if (which === 'month') return monthName(first)
  const day = /^day (\d+)$/.exec(which)
  if (day) return formatDayAndMonth(first + (Number(day[1]) - 1) * dayMs)
  const nth = /^(\d)(?:st|nd|rd|th) (\w+day)$/.exec(which)
  const weekday = nth ? weekdays.indexOf(nth[2]!) : -1
  if (!nth || weekday < 0) return undefined
  const ahead = (weekday - new Date(first).getUTCDay() + 7) % 7
  const at = first + (ahead + 7 * (Number(nth[1]) - 1)) * dayMs
  return `${nth[2]} ${formatDayAndMonth(at)}`
}

/** The start of a day of the month that is `months` after the current one. */
const startOfDay = (now: Date, months: number, day: number): number =>
  Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, day)

const timeOfDayMs = (hour = '', minute = ''): number =>
  (Number(hour) * 60 + Number(minute)) * 60_000

const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

const formatDayAndMonth = (at: number): string => `${new Date(at).getUTCDate()} ${monthName(at)}`

/** The English name of the month of `at`, epoch milliseconds. */
export const monthName = (at: number): string =>
  new Date(at).toLocaleString('en-GB', { month: 'long', timeZone: 'UTC' })
