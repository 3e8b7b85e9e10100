import type { Moment } from '#shared/core/dates.ts'
import type { Role } from '#shared/domain/memory.ts'

/** A message of a client; the content is a text or a provider's array of parts. */
export type Message = {
  role: string
  content?: unknown
  /** When it was said. */
  timestamp?: Moment
  /** False keeps this message out of the vault. */
  memory?: boolean
  /** The speaker. */
  name?: string
  /** The answer broke off; the content is the part that arrived. */
  interrupted?: boolean
  /** Calls of tools, where a provider sends them in a field of their own. */
  tool_calls?: unknown
  function_call?: unknown
  /** The content of Gemini's messages, and of those that the Vercel AI SDK shows. */
  parts?: unknown
  /** What an answer of OpenAI says in place of a content. */
  refusal?: unknown
}

/** Moves the content of a message to `content`; some programs keep it under another name. */
export function withContent(message: Message): Message {
  const { content, parts, refusal } = message
  return content ? message : { ...message, content: parts ?? refusal ?? content }
}

export type Turn = {
  role: Role
  text: string
  at?: number
  speaker?: string
  interrupted?: boolean
}

/** The text of a content, its parts on lines of their own, with placeholders such as `[image]` for other parts. */
export const extractText = (content: unknown): string =>
  contentParts(content)
    .map(({ text }) => text)
    .join('\n')

/** The texts of the parts of a content, without placeholders. */
export const textParts = (content: unknown): string[] =>
  contentParts(content).flatMap(({ text, isText }) => (isText ? [text] : []))

/** The text of a part, or the placeholder of another part. */
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
  const { refusal, text = refusal } = part as Record<string, unknown>
  if (typeof text === 'string') return { text: isThought(part) ? '' : text, isText: true }
  const kind = kindOf(part)
  const placeholder = placeholders.find(([pattern]) => pattern.test(kind))?.[1]
  return { text: placeholder ?? '', isText: false }
}

/** Thoughts are not part of what the model said. */
const isThought = ({ thought, type }: { thought?: unknown; type?: unknown }): boolean =>
  thought === true || type === 'reasoning'

/** Whether a content has no text, media, tool call or thought in a known form. */
export const isUnreadable = (content: unknown): boolean =>
  content === undefined ||
  content === null ||
  (Array.isArray(content) && content.length > 0 && content.every(part => !isKnownPart(part)))

function isKnownPart(part: unknown): boolean {
  if (typeof part !== 'object' || part === null || 'text' in part || 'refusal' in part) return true
  return placeholders.some(([pattern]) => pattern.test(kindOf(part)))
}

const kindOf = (part: object): string =>
  'type' in part && typeof part.type === 'string' ? part.type : (Object.keys(part)[0] ?? '')

/** Placeholders of parts without text, by the first pattern that matches the kind. */
const placeholders: [RegExp, string][] = [
  // Parts of the Vercel AI SDK: where an answer comes from, what a program shows, where a step begins.
  [/^(?:source|data|step)-/, ''],
  [/tool|function/i, ''],
  [/thinking|reasoning/i, ''],
  [/image/i, '[image]'],
  [/audio/i, '[audio]'],
  [/video/i, '[video]'],
  [/file|document|inline_?data/i, '[file]'],
]
