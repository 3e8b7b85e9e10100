import type { Message, Turn } from '#shared/domain/message-content.ts'
import { readQuestion } from '#shared/domain/turn/question.ts'
import {
  excludeTexts,
  type TextExclusion,
} from '#shared/vault/read/search/already-in-conversation.ts'
import { backgroundTurns, recentTurns } from '#shared/vault/read/prepare/recent-turns.ts'

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

/** Reads of a conversation what is recalled for. */
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

/**
 * The texts to recall for, without those of the system: the last user turn, and the few turns before it.
 */
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
