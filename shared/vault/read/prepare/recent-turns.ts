import type { Message, Turn } from '#shared/domain/message-content.ts'
import { parseTurns, sentMessageContent } from '#shared/domain/turn/conversation.ts'
import { comparedCharactersMax } from '#shared/vault/read/search/already-in-conversation.ts'

/** Turns before the question that are recalled for. */
export const backgroundTurns = 4

export type RecentTurn = Turn & {
  /** The text as it was sent, where marks of programs are no part of the turn's: it may be stored so. */
  sent?: string
}

/**
 * The newest turns of a conversation, oldest first: the last one of the user with those before it that are
 * recalled for, and as many as are compared with memories. Older messages are neither decoded nor read: a
 * conversation of 18 MB has 3,600. Turns that are marked as not to be stored are among them.
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
