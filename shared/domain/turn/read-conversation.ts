import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import { textParts, type Message } from '#shared/domain/message-content.ts'
import { readMessageContent } from '#shared/domain/turn/turns.ts'
import { hasAsidePrompt } from '#shared/domain/turn/asides.ts'
import {
  countReasons,
  type LeftOutCounts,
  type LeftOutReason,
} from '#shared/domain/turn/left-out.ts'

/** A conversation, read. */
export type ConversationReading = {
  /** The messages at their places: what is worth storing of each as its content, or an empty content. */
  messages: Message[]
  leftOut: LeftOutCounts
}

type ReadMessage = {
  message: Message
  words: string
  isUser: boolean
  isModel: boolean
  callsTools: boolean
  leftOut: LeftOutReason[]
}

/**
 * Reads a finished conversation: what people said and what they were finally answered. Harness, the calls
 * of programs for themselves, and text beside calls of tools are left out and counted.
 */
export const readConversation = (messages: readonly Message[]): ConversationReading =>
  runAtOnce(readConversationSteps(messages))

/** As `readConversation`, in steps: at once, 3,600 messages of 5,000 characters take 100 ms. */
export function* readConversationSteps(messages: readonly Message[]): Steps<ConversationReading> {
  const read: ReadMessage[] = []
  for (const message of messages) {
    read.push(readMessage(message))
    yield
  }
  yield* leaveOutAsides(read)
  leaveOutSteps(read)
  leaveOutPrivateAnswers(read)
  return {
    messages: read.map(({ message, words }) => ({ ...message, content: words })),
    leftOut: countReasons(read.flatMap(({ leftOut }) => leftOut)),
  }
}

/** Whether the last message of the user is the prompt of a program, or the system prompt that of an aside. */
export function isAsideConversation(messages: readonly Message[]): boolean {
  const user = messages.findLast(({ role }) => role === 'user')
  return hasAsideSystem(messages) || (user !== undefined && isAsideMessage(user))
}

const hasAsideSystem = (messages: readonly Message[]): boolean => {
  const first = messages.find(({ role }) => role === 'system' || role === 'developer')
  return first !== undefined && hasAsidePrompt('system', textParts(first.content))
}

const isAsideMessage = ({ content }: Message): boolean => hasAsidePrompt('user', textParts(content))

function readMessage(message: Message): ReadMessage {
  const { role, content } = message
  const isUser = role === 'user'
  const isModel = role === 'assistant' || role === 'model'
  const isRead = (isUser || isModel) && message.memory !== false
  const { words, leftOut } = isRead ? readMessageContent(role, content) : unread
  return {
    message,
    words,
    isUser,
    isModel,
    callsTools: isModel && callsTools(message),
    leftOut: [...leftOut],
  }
}

const unread = { words: '', leftOut: [] }

const toolCallTypes = /^(?:tool[_-]?(?:use|call)|function[_-]?call)$/i

function callsTools({ content, tool_calls, function_call }: Message): boolean {
  if (Array.isArray(tool_calls) && tool_calls.length > 0) return true
  if (typeof function_call === 'object' && function_call !== null) return true
  if (!Array.isArray(content)) return false
  return content.some((part: unknown) => {
    if (typeof part !== 'object' || part === null) return false
    const { type } = part as { type?: unknown }
    return toolCallTypes.test(typeof type === 'string' ? type : (Object.keys(part)[0] ?? ''))
  })
}

function leaveOut(read: ReadMessage, reason: LeftOutReason): void {
  if (read.words.trim() !== '') read.leftOut.push(reason)
  read.words = ''
}

/** A program's prompt takes with it what follows, until a user speaks after the model. */
function* leaveOutAsides(read: readonly ReadMessage[]): Steps<undefined> {
  const isAsideAtAll = hasAsideSystem(read.map(({ message }) => message))
  let isAside = isAsideAtAll
  let hasModelSpoken = false
  for (const entry of read) {
    yield
    if (entry.isUser) {
      const isPrompt = isAsideMessage(entry.message)
      if (isPrompt) isAside = true
      else if (hasModelSpoken) isAside = isAsideAtAll
      hasModelSpoken = false
    } else if (entry.isModel) hasModelSpoken = true
    if (isAside) leaveOut(entry, 'aside')
  }
}

/** Of each turn with calls of tools the last text of the model stays: the answer, or where none came the last step. */
function leaveOutSteps(read: readonly ReadMessage[]): void {
  let replies: ReadMessage[] = []
  const endTurn = (): void => {
    const last = replies.findLastIndex(({ words }) => words.trim() !== '')
    const lastCall = replies.findLastIndex(({ callsTools }) => callsTools)
    for (const reply of replies.slice(0, Math.min(last, lastCall + 1))) leaveOut(reply, 'step')
    replies = []
  }
  for (const entry of read) {
    const { message, words, isModel } = entry
    if (isModel) replies.push(entry)
    else if (message.role === 'tool' || message.role === 'function') {
      const caller = replies.at(-1)
      if (caller) caller.callsTools = true
    } else if (words.trim() !== '' || message.memory === false) endTurn()
  }
  endTurn()
}

/** An answer repeats what was asked: it goes with a message that is not to be kept. */
function leaveOutPrivateAnswers(read: readonly ReadMessage[]): void {
  let isPrivate = false
  for (const entry of read) {
    if (entry.isUser && (entry.words.trim() !== '' || entry.message.memory === false)) {
      isPrivate = entry.message.memory === false
    } else if (isPrivate && entry.isModel && entry.message.memory !== true) {
      leaveOut(entry, 'private')
    }
  }
}
