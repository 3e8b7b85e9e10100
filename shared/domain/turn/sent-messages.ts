import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import { extractText, isUnreadable, type Message } from '#shared/domain/message-content.ts'
import { sentMessageContent } from '#shared/domain/turn/turns.ts'

/** Which halves of a finished exchange are stored. */
export type StoredHalves = {
  /** What users say. */
  input: boolean
  /** What models answer. */
  response: boolean
  /** An answer is stored only where something of the input that it answers is. */
  responseWithInput: boolean
}

export const bothHalves: StoredHalves = { input: true, response: true, responseWithInput: false }

/**
 * Why a message that a client sent to be stored is not: a switch or mark of its own, an echo of our block, or that
 * nothing in it can be read.
 */
type ExclusionReason = 'input' | 'response' | 'private' | 'echo' | 'unreadable'

export type SentMessages = {
  /** The messages at their places, with what is stored of each as its content: all of it, or nothing. */
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
    const isModel = role === 'assistant' || role === 'model'
    const text = isUser || isModel ? extractText(content) : ''
    const reason: ExclusionReason | undefined =
      text.trim() === '' ? whySilent(message) : excludes(message, stores, isUser, isInputStored)
    const stored: string = reason === undefined ? sentMessageContent(content) : ''
    const why: ExclusionReason | undefined = reason ?? (stored === text ? undefined : 'echo')
    if (why !== undefined && (isUser || isModel)) leftOut[why] = (leftOut[why] ?? 0) + 1
    read.push({ ...message, content: isUser || isModel ? stored : '' })
    if (isUser) {
      isInputStored = (!isAnswered && isInputStored) || stored.trim() !== ''
      isAnswered = false
    } else if (isModel) isAnswered = true
  }
  return { messages: read, leftOut }
}

/** A message of calls alone is silent, as is an empty one. */
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
