import type { Message, Turn } from '#shared/domain/message-content.ts'
import { parseTurns } from '#shared/domain/turn/turns.ts'
import { comparedCharactersMax } from '#shared/vault/read/already-in-conversation.ts'

/** Turns before the question that are recalled for. */
export const backgroundTurns = 4

/**
 * The newest turns of a conversation, oldest first: the last one of the user with those before it that are
 * recalled for, and as many as are compared with memories. Older messages are neither decoded nor read: a
 * conversation of 18 MB has 3,600. Turns that are marked as not to be stored are among them.
 */
export function recentTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  let characters = 0
  /** Turns from the question back; 0 until it is found. */
  let fromQuestion = 0
  for (const message of messages.toReversed()) {
    const { role } = message
    const isFull = characters > comparedCharactersMax
    if (isFull && fromQuestion > backgroundTurns) break
    if (isFull && fromQuestion === 0 && role !== 'user') continue
    const [turn] = parseTurns([{ role, content: message.content }])
    if (!turn) continue
    turns.push(turn)
    characters += turn.text.length
    if (fromQuestion > 0 || turn.role === 'user') fromQuestion++
  }
  return turns.reverse()
}
