import { removeContextBlocks } from '#shared/domain/context-block.ts'
import type { Role } from '#shared/domain/memory.ts'

/** A message as clients send it: content is a plain text, or a provider's array of parts. */
export type Message = {
  role: string
  content?: unknown
  /** Event time in epoch milliseconds. */
  timestamp?: number
  /** False keeps this message out of the vault. */
  memory?: boolean
  /** The speaker, in conversations of several people. */
  name?: string
  /** The answer broke off; the content is the part that arrived. */
  interrupted?: boolean
}

export type Turn = {
  role: Role
  text: string
  at?: number
  speaker?: string
  interrupted?: boolean
}

/** Roles that are stored; system and tool messages never are. `model` is Gemini's name. */
const storedRoles = new Map<string, Role>([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['model', 'assistant'],
])

/**
 * The turns of a conversation that may be stored: user and assistant messages with a text, without
 * messages marked `memory: false` and without echoes of our own memory block.
 */
export function parseTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  for (const { role, content, timestamp, memory, name, interrupted } of messages) {
    const stored = storedRoles.get(role)
    if (!stored || memory === false) continue
    const text = removeContextBlocks(extractText(content))
    if (text.trim() === '') continue
    turns.push({
      role: stored,
      text,
      ...(timestamp !== undefined && { at: timestamp }),
      ...(name !== undefined && { speaker: name }),
      ...(interrupted && { interrupted }),
    })
  }
  return turns
}

/**
 * The text of a message's content: a string as it is; of parts, the text parts, each on its own
 * line, with a short placeholder such as `[image]` for every other kind.
 */
export function extractText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map(part => extractPartText(part))
    .filter(text => text !== '')
    .join('\n')
}

function extractPartText(part: unknown): string {
  if (typeof part === 'string') return part
  if (typeof part !== 'object' || part === null) return ''
  const { type, text } = part as { type?: unknown; text?: unknown }
  if (typeof text === 'string') return isThought(part) ? '' : text
  const kind = typeof type === 'string' ? type : Object.keys(part)[0]
  return kind ? (placeholders.find(([pattern]) => pattern.test(kind))?.[1] ?? '') : ''
}

/** Thoughts are not part of what the model said. */
const isThought = (part: object): boolean => 'thought' in part && part.thought === true

/**
 * Placeholders of parts without text, by the first pattern that matches the kind; others leave
 * nothing.
 */
const placeholders: [RegExp, string][] = [
  [/tool|function/i, ''],
  [/thinking|reasoning/i, ''],
  [/image/i, '[image]'],
  [/audio/i, '[audio]'],
  [/video/i, '[video]'],
  [/file|document|inline_?data/i, '[file]'],
  [/refusal/i, '[refusal]'],
]
