import { parseStart } from '#shared/core/dates.ts'
import type { Role } from '#shared/domain/memory.ts'
import { contentParts, type Message, type Turn } from '#shared/domain/message-content.ts'
import { readContent, type ContentReading } from '#shared/domain/turn/read-content.ts'

/** Roles that are stored; system and tool messages never are. `model` is Gemini's name. */
const storedRoles = new Map<string, Role>([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['model', 'assistant'],
])

/**
 * The turns of a conversation that may be stored: what user and assistant say in messages that are not marked
 * `memory: false`, without harness and without echoes of our own memory block.
 */
export function parseTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  for (const { role, content, timestamp, memory, name, interrupted } of messages) {
    const stored = storedRoles.get(role)
    if (!stored || memory === false) continue
    const { words: text } = readMessageContent(role, content)
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
