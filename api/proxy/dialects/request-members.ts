import { readConversation, type RawConversation } from '#api/proxy/dialects/conversation.ts'
import type { RequestFormat, RawMessage } from '#api/proxy/dialects/format.ts'
import { forEachRetainedMember, type Removals } from '#api/proxy/json/splice.ts'
import {
  createNameMatcher,
  forEachMember,
  kindAt,
  valueEnd,
  parseValue,
} from '#api/proxy/json/walk.ts'
import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'

/** Offsets of a value in a body. */
type ByteSpan = { at: number; end: number }

/** The members of a request body without its switches. */
export type RequestMembers = {
  model: ByteSpan | undefined
  /** The `cache_control` of the body. */
  cacheControl: ByteSpan | undefined
  stream: boolean
  /** Offset of the system prompt that is no message. */
  system: number | undefined
  /** What the provider keeps and this request continues (`previous_response_id`, `conversation`). */
  continued: ByteSpan[]
  entries: RawMessage[]
  typedFields: Record<string, unknown>
  /** Most tokens that the reply may have. */
  maxTokens: number | undefined
}

const matchMember = createNameMatcher([
  'model',
  'stream',
  'cache_control',
  'messages',
  'contents',
  'system',
  'systemInstruction',
  'system_instruction',
  'input',
  'instructions',
  'previous_response_id',
  'conversation',
])

/** The conversations of a body by their offsets; of several members with that name the last one counts. */
type Conversations = ReadonlyMap<number, RawConversation>

/** Smaller bodies are read at once. */
const largeBytesMin = 1024 * 1024

/** Reads the conversation of a large body before its other members, in steps. */
export function* readLargeConversations(
  body: Buffer,
  start: number,
  format: RequestFormat,
): Steps<Conversations> {
  const conversations = new Map<number, RawConversation>()
  if (body.length < largeBytesMin) return conversations
  const found: number[] = []
  forEachMember(body, start, (name, nameEnd, value) => {
    if (matchMember(body, name, nameEnd) === format.messagesField) found.push(value)
    return valueEnd(body, value)
  })
  for (const at of found) {
    yield
    conversations.set(at, yield* readConversation(body, at, format))
  }
  return conversations
}

/**
 * Reads the members of the object at `start`. Of members with the same name the last one counts, as in every
 * provider's parser.
 *
 * @param isSwitch whether a member is one of ours: it goes into `removals`
 */
export function readMembers(
  body: Buffer,
  start: number,
  format: RequestFormat,
  isSwitch: (name: number, nameEnd: number, value: number) => boolean,
  { conversations, removals }: { conversations: Conversations; removals: Removals },
): RequestMembers {
  const members: RequestMembers = {
    model: undefined,
    cacheControl: undefined,
    stream: false,
    system: undefined,
    continued: [],
    entries: [],
    typedFields: {},
    maxTokens: undefined,
  }
  forEachRetainedMember(body, start, removals, isSwitch, (nameStart, nameEnd, value) => {
    const name = matchMember(body, nameStart, nameEnd)
    const conversation =
      name === format.messagesField
        ? (conversations.get(value) ?? runAtOnce(readConversation(body, value, format)))
        : undefined
    for (const offset of conversation?.removals ?? []) removals.push(offset)
    const end = conversation?.end ?? valueEnd(body, value)
    const offsets = { name: nameStart, nameEnd, value, end }
    format.readTypedField(body, members.typedFields, offsets)
    members.maxTokens = readMaxTokens(body, offsets) ?? members.maxTokens
    if (conversation) members.entries = conversation.entries
    else if (name === 'model' && format.hasModelInBody) {
      members.model = kindAt(body, value) === 'string' ? { at: value, end } : undefined
    } else if (name === 'cache_control' && format.hasRequestCacheControl) {
      members.cacheControl = kindAt(body, value) === 'object' ? { at: value, end } : undefined
    } else if (name === 'stream') members.stream = format.hasModelInBody && body[value] === 0x74
    else if (name?.startsWith('system') || name === 'instructions') members.system = value
    else if (name === 'previous_response_id' || name === 'conversation') {
      if (kindAt(body, value) !== 'other') members.continued.push({ at: value, end })
    }
    return end
  })
  return members
}

const matchTokenLimit = createNameMatcher([
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'maxOutputTokens',
  'generationConfig',
  'generation_config',
])

/** How many tokens a member of a body allows the reply; undefined where it does not say. */
function readMaxTokens(
  body: Buffer,
  { name, nameEnd, value, end }: { name: number; nameEnd: number; value: number; end: number },
): number | undefined {
  const member = matchTokenLimit(body, name, nameEnd)
  if (member === undefined) return undefined
  const kind = kindAt(body, value)
  if (member.startsWith('max')) {
    const max = kind === 'other' ? parseValue(body, value, end) : undefined
    return typeof max === 'number' ? max : undefined
  }
  if (kind !== 'object') return undefined
  let inside: number | undefined
  forEachMember(body, value, (inner, innerEnd, at) => {
    const offsets = { name: inner, nameEnd: innerEnd, value: at, end: valueEnd(body, at) }
    inside = readMaxTokens(body, offsets) ?? inside
    return offsets.end
  })
  return inside
}
