import { parseStart } from '#shared/core/dates.ts'
import type { Role } from '#shared/domain/memory.ts'
import {
  contentParts,
  extractText,
  type Message,
  type Turn,
} from '#shared/domain/message-content.ts'
import { readContent, sentContent, type ContentReading } from '#shared/domain/turn/read-content.ts'

/** Roles that are stored; system and tool messages never are. `model` is Gemini's name. */
const storedRoles = new Map<string, Role>([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['model', 'assistant'],
])

/**
 * The turns of a conversation: what user and assistant say in messages that are not marked `memory: false`, without
 * the marks of known programs and without echoes of our own memory block.
 */
export const parseTurns = (messages: readonly Message[]): Turn[] =>
  collectTurns(messages, ({ role, content }) => readMessageContent(role, content).words)

/**
 * The turns of messages whose content was read before, or is stored as it was sent: it stays as it is. Read
 * again, it would lose what a person wrote inside a wrapper.
 */
export const toReadTurns = (messages: readonly Message[]): Turn[] =>
  collectTurns(messages, ({ content }) => extractText(content))

function collectTurns(messages: readonly Message[], wordsOf: (message: Message) => string): Turn[] {
  const turns: Turn[] = []
  for (const message of messages) {
    const { role, timestamp, memory, name, interrupted } = message
    const stored = storedRoles.get(role)
    if (!stored || memory === false) continue
    const text = wordsOf(message)
    if (text.trim() === '') continue
    turns.push({
      role: stored,
      text,
      ...(timestamp !== undefined && { at: parseStart(timestamp) }),
      ...(name !== undefined && { speaker: name }),
      ...(interrupted && { interrupted }),
    })
  }
  return turns
}

/** What a message says, and what of it is left out. */
export const readMessageContent = (role: string, content: unknown): ContentReading =>
  readContent(contentParts(content), storedRoles.get(role) === 'assistant')

/** What a message says as it was sent: all but echoes of our own memory block. */
export const sentMessageContent = (content: unknown): string => sentContent(contentParts(content))
