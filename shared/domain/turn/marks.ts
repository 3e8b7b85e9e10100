import { textParts, type Message } from '#shared/domain/message-content.ts'
import rows from '#shared/domain/turn/marks.json' with { type: 'json' }

type KnownMark = {
  program: string
  /** Public repositories with their files, or pages. */
  source: string
  /** The day on which the source was read, such as `2026-11-25`. */
  date: string
  /** The elements count only in a message that holds this text as well: people use their names too. */
  beside?: string
  /** Whose messages it stands in: the user's, when missing. */
  of?: 'model'
  /** Elements that are left out: what follows `<`, which is more than the name where others use the name. */
  elements?: string[]
  /** Elements around the user's own words: only their tags are left out. */
  around?: string[]
  /** The words of the user in an element that is left out otherwise: what follows `begin`, up to `end`. */
  passedOn?: { element: string; begin: string; end: string }
  /** What is left out from its first line to its last. */
  spans?: { name: string; begin: string; end: string }[]
  /** Messages that begin so. */
  texts?: KnownText[]
  asides?: AsideForm[]
  template?: Template
  request?: { words: string[]; pasted: string[] }
}

export type KnownText = {
  name: string
  /** How the message begins, without leading white space. */
  beginning: string
  /** Stands in its first line as well. */
  also?: string
  /** The user's words follow this text; a message without it stays. When missing, the whole message is left out. */
  wordsAfter?: string
}

/** Calls of a program for itself: titles, tags, follow-up questions, search queries, routing, quota and summaries. */
type AsideForm = {
  /** Which text begins so: a part of a user's message, or of the system prompt. */
  of: 'user' | 'system'
  /** In lower case, white space as single spaces. */
  beginning: string
  /** Texts of which one also occurs in the first characters, where the beginning alone could be a person's. */
  also?: string[]
  /** Texts that a person's words begin with, though they begin so. */
  unless?: string
  /** The beginning is the whole text, and the reply may have one token. */
  isQuotaTest?: boolean
}

/** Names and labels of prompt templates that no program owns. They choose what is asked with, never what is stored. */
type Template = {
  /** Elements around quoted documents, and around the question itself; in kebab case. */
  quotedElements: string[]
  questionElements: string[]
  /** Labels at the beginning of a line, in lower case. */
  questionLabels: string[]
  contextLabels: string[]
  answerLabels: string[]
  /** Labels of a question that may follow other words on their line: no person writes them. */
  inlineLabels: string[]
  /** Beginnings of instructions to a model, in lower case. */
  instructions: string[]
}

/** The one table of names and marks of other programs. */
export const knownMarks = rows as readonly KnownMark[]

export const template = knownMarks.find(row => row.template)!.template!
export const request = knownMarks.find(row => row.request)!.request!

const nameOf = (element: string): string => /^[\w.:-]+/.exec(element)![0]

export const kebabCase = (name: string): string =>
  name
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .replaceAll(/[_.:]/g, '-')
    .toLowerCase()

const elementsByName = Map.groupBy(
  knownMarks.flatMap(row => [
    ...(row.elements ?? []).map(follows => ({ isAround: false, row, follows })),
    ...(row.around ?? []).map(follows => ({ isAround: true, row, follows })),
  ]),
  ({ follows }) => nameOf(follows),
)

export type MarkedText = {
  text: string
  isModel: boolean
  /** Whether the message, in this part or another, holds a text. */
  messageHolds(text: string): boolean
}

const isOf = ({ of, beside }: KnownMark, { isModel, messageHolds }: MarkedText): boolean =>
  isModel === (of === 'model') && (beside === undefined || messageHolds(beside))

/** The row of an element that begins at `start`; undefined where no known program writes it so. */
export const findKnownElement = (from: MarkedText, rawName: string, start: number) =>
  elementsByName
    .get(rawName)
    ?.find(({ row, follows }) => isOf(row, from) && from.text.startsWith(follows, start + 1))

/** The form of a message of the user that a program wrote, or put around their words. */
export const findKnownText = (trimmed: string): KnownText | undefined =>
  knownTexts.find(
    ({ beginning, also }) =>
      trimmed.startsWith(beginning) &&
      (also === undefined || trimmed.slice(0, 128).split('\n', 1)[0]!.includes(also)),
  )

const knownTexts = knownMarks.flatMap(({ texts = [] }) => texts)

export const knownSpans = knownMarks.flatMap(({ spans = [] }) => spans)

export const knownPassages = knownMarks.flatMap(({ passedOn = [] }) => passedOn)

const namesOfUser = (kind: 'elements' | 'around'): string[] =>
  knownMarks.flatMap(row => (row.of === 'model' ? [] : (row[kind] ?? []))).map(nameOf)

const leftOutNames = new Set([
  ...template.quotedElements,
  ...namesOfUser('elements').map(kebabCase),
])
const wordsNames = new Set([...template.questionElements, ...namesOfUser('around').map(kebabCase)])

/** Whether an element of this name is asked with: `words`, `left-out`, or undefined where nothing is known of it. */
export const promptElementKind = (name: string): 'words' | 'left-out' | undefined =>
  wordsNames.has(name) ? 'words' : leftOutNames.has(name) ? 'left-out' : undefined

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
