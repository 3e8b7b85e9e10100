import type { Message, Turn } from '#shared/domain/message-content.ts'
import { readQuestion } from '#shared/domain/turn/question.ts'
import {
  excludeTexts,
  type TextExclusion,
  comparedCharactersMax,
} from '#shared/vault/read/search/already-in-conversation.ts'
import { parseTurns, sentMessageContent } from '#shared/domain/turn/conversation.ts'

/** What a conversation asks of memory. */
export type ConversationQuestion = {
  /** What the last turn of the user asks. */
  question: string
  /** The turns before it. */
  background: string
  /** All texts but the question, which a memory may have as well. */
  excludedTexts: TextExclusion
}

const questionCharacters = 8_000
const backgroundCharacters = 2_000

/** Reads the question, its background and all texts of a conversation. */
export function readConversationQuestion(messages: readonly Message[]): ConversationQuestion {
  const turns = recentTurns(messages)
  const index = questionTurnIndex(turns)
  const excludedTexts = excludeTexts(
    turns
      .toSpliced(index, 1)
      .flatMap(({ text, sent }) => (sent === undefined ? text : [text, sent])),
  )
  return { ...retrievalTexts(turns, index), excludedTexts }
}

/** The last user turn, or the last turn when no user turn exists. */
function questionTurnIndex(turns: readonly Turn[]): number {
  const userTurn = turns.findLastIndex(({ role }) => role === 'user')
  return userTurn >= 0 ? userTurn : Math.max(0, turns.length - 1)
}

/** The texts to recall for: the last user turn, and the few turns before it. */
function retrievalTexts(
  turns: readonly Turn[],
  last: number,
): {
  question: string
  background: string
} {
  const question = readQuestion(turns[last]?.text ?? '')
    .slice(-questionCharacters)
    .trim()
  const background = turns
    .slice(Math.max(0, last - backgroundTurns), Math.max(0, last))
    .map(({ text }) => text.slice(0, backgroundCharacters / backgroundTurns))
    .join('\n')
    .trim()
  return { question, background }
}

/** Turns before the question that are recalled for. */
const backgroundTurns = 4

type RecentTurn = Turn & {
  /** The text as it was sent, where marks of programs are no part of the turn's: it may be stored so. */
  sent?: string
}

/**
 * The newest turns of a conversation, oldest first: those that are recalled for, and as many as are compared
 * with memories. Older messages are neither decoded nor read: a conversation of 18 MB has 3,600. Turns that are
 * marked as not to be stored are among them.
 */
export function recentTurns(messages: readonly Message[]): RecentTurn[] {
  const turns: RecentTurn[] = []
  let characters = 0
  /** Turns from the question back; 0 until it is found. */
  let fromQuestion = 0
  for (const message of messages.toReversed()) {
    const { role } = message
    const isFull = characters > comparedCharactersMax
    if (isFull && fromQuestion > backgroundTurns) break
    if (isFull && fromQuestion === 0 && role !== 'user') continue
    const { content } = message
    const [turn] = parseTurns([{ role, content }])
    if (!turn) continue
    const sent = sentMessageContent(content)
    turns.push(sent === turn.text ? turn : { ...turn, sent })
    characters += sent.length
    if (fromQuestion > 0 || turn.role === 'user') fromQuestion++
  }
  return turns.reverse()
}
