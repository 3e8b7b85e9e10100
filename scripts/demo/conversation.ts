import { readFileSync } from 'node:fs'
import { fillDates, parseRelativeDate } from '#scripts/demo/relative-dates.ts'

/** One turn as `POST /v1/memory/ingest` takes it. */
type ConversationTurn = {
  role: 'user' | 'assistant'
  content: string
  /** Epoch milliseconds. */
  timestamp: number
}

/** What was said at one go. */
export type Sitting = { title: string; at: number; turns: ConversationTurn[] }

export type Conversation = {
  sittings: Sitting[]
  /** The text of the turn that goes by this id. @throws Error when there is none. */
  turnText: (id: string) => string
}

type ConversationLine = {
  role: ConversationTurn['role']
  content: string
  /** By which a question names the turn that answers it. */
  id?: string
  /** On the first turn of a sitting: its title, and when it took place. */
  sitting?: string
  when?: string
}

const file = new URL('conversation.jsonl', import.meta.url)

/** People type: a turn follows the one before it after this long. */
const turnIntervalMs = 90_000

/** The conversation that ships with the project, dated so that it ends shortly before `now`. */
export function readConversation(now: Date): Conversation {
  const sittings: Sitting[] = []
  const textsById = new Map<string, string>()
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { role, content, id, sitting: title, when } = JSON.parse(line) as ConversationLine
    if (title && when) sittings.push({ title, at: parseRelativeDate(when, now), turns: [] })
    const { at, turns } = sittings.at(-1)!
    const text = fillDates(content, now)
    turns.push({ role, content: text, timestamp: at + turns.length * turnIntervalMs })
    if (id) textsById.set(id, text)
  }
  return {
    sittings,
    turnText(id) {
      const text = textsById.get(id)
      if (text === undefined) throw new Error(`No turn goes by the id ${id}`)
      return text
    },
  }
}
