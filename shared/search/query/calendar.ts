import { foldText } from '#shared/search/words/writing-systems.ts'

const DAY_MS = 86_400_000

/** Event times from `from` until before `to`, epoch milliseconds. */
export type TimeSpan = { from: number; to: number }

const monthNames = [
  'january jan januar enero janvier gennaio janeiro января январь ocak',
  'february feb februar febrero fevrier febbraio fevereiro февраля февраль subat',
  'march mar marz marzo mars marco марта март mart',
  'april apr abril avril aprile апреля апрель nisan',
  'may mai mayo maggio maio мая май mayis',
  'june jun juni junio juin giugno junho июня июнь haziran',
  'july jul juli julio juillet luglio julho июля июль temmuz',
  'august aug agosto aout августа август agustos',
  'september sep sept septiembre septembre settembre setembro сентября сентябрь eylul',
  'october oct oktober octubre octobre ottobre outubro октября октябрь ekim',
  'november nov noviembre novembre novembro ноября ноябрь kasim',
  'december dec dezember diciembre decembre dicembre dezembro декабря декабрь aralik',
]

/** From 0 for January; undefined for anything else. Case and accents do not matter. */
export function monthOf(name: string): number | undefined {
  return months.get(foldText(name))
}

const months = new Map(
  monthNames.flatMap((names, month) => names.split(' ').map(name => [name, month] as const)),
)

const weekdayNames = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')

/** From 0 for Sunday. */
export function weekdayOf(name: string): number | undefined {
  const day = weekdayNames.indexOf(name.toLowerCase())
  return day < 0 ? undefined : day
}

/** The first month, from 0, of each season of the northern hemisphere. */
export const seasons: Readonly<Record<string, number>> = {
  spring: 2,
  summer: 5,
  autumn: 8,
  fall: 8,
  winter: 11,
}

/** Users' time zones are unknown: a UTC day is extended from the noon before to the noon after. */
const timezoneSlackMs = DAY_MS / 2

/** `days` days from the UTC day given. */
export function daySpan(year: number, month: number, day: number, days = 1): TimeSpan {
  const start = Date.UTC(year, month, day)
  return { from: start - timezoneSlackMs, to: start + days * DAY_MS + timezoneSlackMs }
}

export function monthSpan(year: number, month: number, count = 1): TimeSpan {
  return {
    from: Date.UTC(year, month, 1) - timezoneSlackMs,
    to: Date.UTC(year, month + count, 1) + timezoneSlackMs,
  }
}

export function yearSpan(year: number): TimeSpan {
  return monthSpan(year, 0, 12)
}

/** `days` whole days that end with the day of `now`, or `ago` days earlier. */
export function lastDaysSpan(now: number, days: number, ago = 0): TimeSpan {
  const { year, month, day } = utcDateOf(now)
  return daySpan(year, month, day - ago - days + 1, days)
}

/** The calendar week, Monday to Sunday, that lies `ago` weeks back. */
export function weekSpan(now: number, ago: number): TimeSpan {
  const { year, month, day } = utcDateOf(now)
  const sinceMonday = (new Date(now).getUTCDay() + 6) % 7
  return daySpan(year, month, day - sinceMonday - 7 * ago, 7)
}

export function utcDateOf(now: number): { year: number; month: number; day: number } {
  const date = new Date(now)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate() }
}
