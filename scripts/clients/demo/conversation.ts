import { readFileSync } from 'node:fs'

/** One turn as `POST /v1/memory/ingest` takes it; `timestamp` in epoch milliseconds. */
type Turn = { role: 'user' | 'assistant'; content: string; timestamp: number }

/** The turns of one sitting; `at` in epoch milliseconds. */
export type Sitting = { title: string; at: number; turns: Turn[] }

export type Conversation = {
  sittings: Sitting[]
  /** The text of the turn with this id. @throws Error when there is none. */
  turnText: (id: string) => string
}

/** A question asked months later, in words other than those of the conversation. */
export type DemoQuestion = {
  /** `fillDates` replaces the dates in braces. */
  text: string
  /** What makes the answer hard to find. */
  takes: string
  /** The id of the turn that answers it; it must be among the first three results. */
  answerTurnId: string
  /** The id of a turn with an outdated answer; the current answer must rank above it. */
  outdatedTurnId?: string
}

/** `sitting` and `when` stand at the first turn of a sitting: its title and its relative date. */
type ConversationLine = Pick<Turn, 'role' | 'content'> & {
  id?: string
  sitting?: string
  when?: string
}

const readLines = <Line>(name: string): Line[] =>
  readFileSync(new URL(name, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Line)

export const questions: readonly DemoQuestion[] = readLines('questions.jsonl')

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Reads the conversation of the demo, with dates relative to `now`; it ends shortly before. */
export function readConversation(now: Date): Conversation {
  const sittings: Sitting[] = []
  const texts = new Map<string | undefined, string>()
  for (const { role, content, id, sitting, when } of readLines<ConversationLine>(
    'conversation.jsonl',
  )) {
    if (sitting && when) {
      sittings.push({ title: sitting, at: parseRelativeDate(when, now), turns: [] })
    }
    const { at, turns } = sittings.at(-1)!
    const text = fillDates(content, now)
    turns.push({ role, content: text, timestamp: at + turns.length * 1.5 * minuteMs })
    texts.set(id, text)
  }
  return {
    sittings,
    turnText(id) {
      const text = texts.get(id)
      if (text === undefined) throw new Error(`No turn has the id ${id}`)
      return text
    },
  }
}

/*
 * The dates of the story are relative to the current day, so that "three months ago" is always true. All are UTC.
 */

const relativeDate =
  /^(?:(\d+) months? ago, day (\d+), (\d\d):(\d\d)|(\d+) days? ago, (\d\d):(\d\d)|(\d+) minutes? ago)$/

/**
 * Parses a text such as `5 months ago, day 12, 07:10`, `4 days ago, 18:20` or `150 minutes ago`.
 *
 * @returns epoch milliseconds
 */
function parseRelativeDate(words: string, now: Date): number {
  const found = relativeDate.exec(words)
  if (!found) throw new Error(`Not a relative date: "${words}"`)
  const [, months, day, hour, minute, days, dayHour, dayMinute, minutes] = found.map(Number)
  if (found[8]) return now.getTime() - minutes! * minuteMs
  return found[1]
    ? startOfDay(now, -months!, day!) + (hour! * 60 + minute!) * minuteMs
    : startOfDay(now, 0, now.getUTCDate() - days!) + (dayHour! * 60 + dayMinute!) * minuteMs
}

/**
 * Replaces the dates in braces: `{day 12, 6 months ago}` becomes "12 May", `{2nd Saturday, 3 months ago}`
 * "Saturday 8 August", `{day 20, in 1 month}` "20 December" and `{month, 5 months ago}` "June".
 */
export function fillDates(text: string, now: Date): string {
  return text.replaceAll(/\{([^}]*)\}/g, (_, words: string) => {
    const [, which, ago, ahead] = /^(.+), (?:(\d+) months? ago|in (\d+) months?)$/.exec(words) ?? []
    const first = startOfDay(now, ago ? -Number(ago) : Number(ahead), 1)
    if (which === 'month') return monthName(first)
    const [, day] = /^day (\d+)$/.exec(which ?? '') ?? []
    if (day) return formatDay(first + (Number(day) - 1) * dayMs)
    const [, nth, name] = /^(\d)(?:st|nd|rd|th) (\w+day)$/.exec(which ?? '') ?? []
    const week = Array.from({ length: 7 }, (_, index) => first + index * dayMs)
    const at = week.find(time => weekdayName(time) === name)
    if (at === undefined) throw new Error(`Not a date: "{${words}}"`)
    return `${name} ${formatDay(at + 7 * (Number(nth) - 1) * dayMs)}`
  })
}

/** The start of a day of the month that is `months` after the current one. */
const startOfDay = (now: Date, months: number, day: number): number =>
  Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, day)

const weekdayName = (at: number): string =>
  new Date(at).toLocaleString('en-GB', { weekday: 'long', timeZone: 'UTC' })

/** The English name of the month of `at`, epoch milliseconds. */
export const monthName = (at: number): string =>
  new Date(at).toLocaleString('en-GB', { month: 'long', timeZone: 'UTC' })

/** The day of `at`, epoch milliseconds, such as `12 May`. */
export const formatDay = (at: number): string => `${new Date(at).getUTCDate()} ${monthName(at)}`
