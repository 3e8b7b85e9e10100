import { readFileSync } from 'node:fs'
import { fillDates, parseRelativeDate } from '#scripts/clients/demo/relative-dates.ts'

/** One turn as `POST /v1/memory/ingest` takes it. */
type ConversationTurn = {
  role: 'user' | 'assistant'
  content: string
  /** Epoch milliseconds. */
  timestamp: number
}

/** The turns of one sitting; `at` in epoch milliseconds. */
export type Sitting = { title: string; at: number; turns: ConversationTurn[] }

export type Conversation = {
  sittings: Sitting[]
  /** The text of the turn with this id. @throws Error when there is none. */
  turnText: (id: string) => string
}

type ConversationLine = {
  role: ConversationTurn['role']
  content: string
  /** Id by which a question refers to the turn. */
  id?: string
  /** On the first turn of a sitting: its title and its relative date. */
  sitting?: string
  when?: string
}

const file = new URL('conversation.jsonl', import.meta.url)

/** Time between two turns of a sitting. */
const turnIntervalMs = 90_000

/** Reads the conversation of the project, with dates relative to `now`; it ends shortly before. */
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
      if (text === undefined) throw new Error(`No turn has the id ${id}`)
      return text
    },
  }
}
