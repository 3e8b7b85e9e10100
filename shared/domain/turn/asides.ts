import { textParts, type Message } from '#shared/domain/message-content.ts'
import { knownMarks, type AsideForm } from '#shared/domain/turn/marks.ts'

export type CallShape = {
  /** The parts of the system prompt. */
  systemTexts: readonly string[]
  /** The parts of the user's messages since the last one of the model, as they were sent. */
  userTexts: readonly string[]
  maxTokens: number | undefined
}

/** Whether a call is a program's own: nothing is recalled for it and nothing of it is stored. */
export const isAsideCall = ({ systemTexts, userTexts, maxTokens }: CallShape): boolean =>
  hasAsidePrompt('system', systemTexts) || hasAsidePrompt('user', userTexts, maxTokens)

/** Whether a message of the user, or a system prompt, is that of an aside: one of its parts is. */
export const hasAsidePrompt = (
  of: AsideForm['of'],
  parts: readonly string[],
  maxTokens?: number,
): boolean => parts.some(part => isAsidePrompt(of, part, maxTokens))

/** Whether the last message of the user is the prompt of a program, or the system prompt that of an aside. */
export function isAsideConversation(messages: readonly Message[]): boolean {
  const user = messages.findLast(({ role }) => role === 'user')
  const system = messages.find(({ role }) => role === 'system' || role === 'developer')
  return (
    hasAsidePrompt('system', textParts(system?.content)) ||
    hasAsidePrompt('user', textParts(user?.content))
  )
}

const asideForms = knownMarks.flatMap(({ asides = [] }) => asides)

function isAsidePrompt(of: AsideForm['of'], text: string, maxTokens: number | undefined): boolean {
  if (text === '') return false
  const start = text.slice(0, 4_000).trimStart().replaceAll(/\s+/g, ' ').toLowerCase()
  return asideForms.some(
    form =>
      form.of === of &&
      start.startsWith(form.beginning) &&
      (!form.isQuotaTest || (start === form.beginning && maxTokens === 1)) &&
      (form.also === undefined || form.also.some(text => start.includes(text))) &&
      (form.unless === undefined || !start.startsWith(form.unless)),
  )
}
