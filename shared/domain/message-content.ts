import type { Moment } from '#shared/core/dates.ts'
import type { Role } from '#shared/domain/memory.ts'

/** A message as clients send it: content is a plain text, or a provider's array of parts. */
export type Message = {
  role: string
  content?: unknown
  /** When it was said. */
  timestamp?: Moment
  /** False keeps this message out of the vault. */
  memory?: boolean
  /** The speaker, in conversations of several people. */
  name?: string
  /** The answer broke off; the content is the part that arrived. */
  interrupted?: boolean
  /** Calls of tools, where a provider sends them beside the content. */
  tool_calls?: unknown
  function_call?: unknown
}

export type Turn = {
  role: Role
  text: string
  at?: number
  speaker?: string
  interrupted?: boolean
}

/**
 * The text of a message's content: a string as it is; of parts, the text parts, each on its own
 * line, with a short placeholder such as `[image]` for every other kind.
 */
export function extractText(content: unknown): string {
  return contentParts(content)
    .map(({ text }) => text)
    .join('\n')
}

/** The texts of the parts of a content; placeholders are left out. */
export const textParts = (content: unknown): string[] =>
  contentParts(content).flatMap(({ text, isText }) => (isText ? [text] : []))

/** A part of a message in a normal form: its text, or the placeholder of what is no text. */
export type ContentPart = { text: string; isText: boolean }

/** The parts of a content that have a text or a placeholder. */
export function contentParts(content: unknown): ContentPart[] {
  if (typeof content === 'string') return [{ text: content, isText: true }]
  if (!Array.isArray(content)) return []
  return content.map(part => toContentPart(part)).filter(({ text }) => text !== '')
}

function toContentPart(part: unknown): ContentPart {
  if (typeof part === 'string') return { text: part, isText: true }
  if (typeof part !== 'object' || part === null) return { text: '', isText: false }
  const { type, text } = part as { type?: unknown; text?: unknown }
  if (typeof text === 'string') return { text: isThought(part) ? '' : text, isText: true }
  const kind = typeof type === 'string' ? type : Object.keys(part)[0]
  const placeholder = kind && placeholders.find(([pattern]) => pattern.test(kind))?.[1]
  return { text: placeholder ?? '', isText: false }
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
