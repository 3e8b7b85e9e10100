import { parseStart } from '#shared/core/dates.ts'
import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import { removeContextBlocks } from '#shared/domain/echoes.ts'
import type { Role } from '#shared/domain/memory.ts'
import {
  contentParts,
  extractText,
  isUnreadable,
  type ContentPart,
  type Message,
  type Turn,
} from '#shared/domain/message-content.ts'
import { readText, type LeftOutPiece } from '#shared/domain/turn/text.ts'

/** Roles that are stored; system and tool messages never are. `model` is Gemini's name. */
const storedRoles = new Map<string, Role>([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['model', 'assistant'],
])

/**
 * Reads the turns of a conversation without messages that are marked `memory: false`, without the marks of known
 * programs and without echoes of our own memory block.
 */
export const parseTurns = (messages: readonly Message[]): Turn[] =>
  collectTurns(messages, ({ role, content }) => readMessageContent(role, content).words)

/**
 * The turns of messages whose content was read before, or is stored as it was sent: it is not read again, since
 * it would lose what a person wrote inside a wrapper.
 */
export const toReadTurns = (messages: readonly Message[]): Turn[] =>
  collectTurns(messages, ({ content }) => extractText(content))

function collectTurns(messages: readonly Message[], wordsOf: (message: Message) => string): Turn[] {
  return messages.flatMap(message => {
    const { role, timestamp, memory, name, interrupted } = message
    const stored = storedRoles.get(role)
    if (!stored || memory === false) return []
    const text = wordsOf(message)
    if (text.trim() === '') return []
    return {
      role: stored,
      text,
      ...(timestamp !== undefined && { at: parseStart(timestamp) }),
      ...(name !== undefined && { speaker: name }),
      ...(interrupted && { interrupted }),
    }
  })
}

export type ContentReading = {
  /** Words, code and placeholders of media, part by part on lines of their own. */
  words: string
  /** What known programs have written. */
  leftOut: readonly LeftOutPiece[]
}

/** Reads a message without the marks of known programs and without echoes of our own memory block. */
export function readMessageContent(role: string, content: unknown): ContentReading {
  const isModel = storedRoles.get(role) === 'assistant'
  const sent = withoutEchoes(content)
  const messageHolds = (part: string): boolean => sent.some(({ text }) => text.includes(part))
  const readings = sent.map(({ text, isText }) =>
    isText ? readText({ text, isModel, messageHolds }) : { words: text, leftOut: [] },
  )
  return {
    words: joinParts(readings.map(({ words }) => words)),
    leftOut: readings.flatMap(({ leftOut }) => leftOut),
  }
}

/** The text of a message as it was sent, without echoes of our own memory block. */
export const sentMessageContent = (content: unknown): string =>
  joinParts(withoutEchoes(content).map(({ text }) => text))

const withoutEchoes = (content: unknown): ContentPart[] =>
  contentParts(content).map(part => ({ ...part, text: removeContextBlocks(part.text) }))

const joinParts = (texts: readonly string[]): string => texts.filter(text => text !== '').join('\n')

/** Which halves of a finished exchange are stored. */
export type StoredHalves = {
  /** Messages of the user. */
  input: boolean
  /** Answers of the model. */
  response: boolean
  /** An answer is stored only where something of the input that it answers is. */
  responseWithInput: boolean
}

export const bothHalves: StoredHalves = { input: true, response: true, responseWithInput: false }

/** Why a sent message is not stored: a switch or mark of the client, an echo of our block, or nothing to read. */
type ExclusionReason = 'input' | 'response' | 'private' | 'echo' | 'unreadable'

export type SentMessages = {
  /** The messages at their places; the content is what is stored of each, all of it or nothing. */
  messages: Message[]
  /** How many messages, or echoes in them, are not stored. */
  leftOut: { [Reason in ExclusionReason]?: number }
}

/** Reads a finished exchange that a client sends to be stored: it is stored as it was sent. */
export const readSentMessages = (
  messages: readonly Message[],
  stores: StoredHalves = bothHalves,
): SentMessages => runAtOnce(readSentMessageSteps(messages, stores))

/** As `readSentMessages`, in steps. */
export function* readSentMessageSteps(
  messages: readonly Message[],
  stores: StoredHalves,
): Steps<SentMessages> {
  const leftOut: SentMessages['leftOut'] = {}
  const read: Message[] = []
  let isInputStored = false
  let isAnswered = true
  for (const message of messages) {
    yield
    const { role, content } = message
    const isUser = role === 'user'
    const isStoredRole = storedRoles.has(role)
    const text = isStoredRole ? extractText(content) : ''
    const reason: ExclusionReason | undefined =
      text.trim() === '' ? whySilent(message) : excludes(message, stores, isUser, isInputStored)
    const stored: string = reason === undefined ? sentMessageContent(content) : ''
    const why: ExclusionReason | undefined = reason ?? (stored === text ? undefined : 'echo')
    if (why !== undefined && isStoredRole) leftOut[why] = (leftOut[why] ?? 0) + 1
    read.push({ ...message, content: isStoredRole ? stored : '' })
    if (isUser) isInputStored = (!isAnswered && isInputStored) || stored.trim() !== ''
    if (isStoredRole) isAnswered = !isUser
  }
  return { messages: read, leftOut }
}

/** A message of tool calls alone has no text, as has an empty one: neither is unreadable. */
const whySilent = ({ content, tool_calls, function_call, memory }: Message) =>
  isUnreadable(content) && !tool_calls && !function_call && memory !== false
    ? ('unreadable' as const)
    : undefined

function excludes(
  { memory }: Message,
  { input, response, responseWithInput }: StoredHalves,
  isUser: boolean,
  isInputStored: boolean,
): ExclusionReason | undefined {
  if (memory === false) return 'private'
  if (isUser) return input ? undefined : 'input'
  return response && (isInputStored || !responseWithInput) ? undefined : 'response'
}
