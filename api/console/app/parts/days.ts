import { selectField } from '#api/console/app/parts/fields.ts'
import type { View } from '#api/console/app/html.ts'

const dayMs = 24 * 3600 * 1000

/** A day with its numbers by name; `at` is its beginning in UTC, in epoch milliseconds. */
export type Day = Record<string, number> & { at: number }

/** Adds days without usage, which the service leaves out. */
export function fillMissingDays(
  { start, end }: { start: string; end: string },
  reportedDays: readonly { day: string }[],
  names: readonly string[],
): Day[] {
  const byDay = new Map(
    reportedDays.map(each => [each.day, each as unknown as Record<string, number>]),
  )
  const days: Day[] = []
  const begin = Math.floor(Date.parse(start) / dayMs) * dayMs
  for (let at = begin; at <= Date.parse(end); at += dayMs) {
    const reported = byDay.get(new Date(at).toISOString().slice(0, 10))
    days.push({ at, ...Object.fromEntries(names.map(name => [name, reported?.[name] ?? 0])) })
  }
  return days
}

/** A select field for the period. */
export const daysField = (value: string, onValue: (value: string) => void): View =>
  selectField({
    label: 'Time',
    value,
    onValue,
    choices: [
      ['7', 'the last 7 days'],
      ['30', 'the last 30 days'],
      ['90', 'the last 90 days'],
      ['365', 'the last year'],
    ],
  })
