import type { HarnessReason } from '#shared/domain/turn/harness-elements.ts'
import { findTemplateQuestion } from '#shared/domain/turn/labels.ts'
import { segmentText, type Segment } from '#shared/domain/turn/segments.ts'
import { templateForms } from '#shared/domain/turn/templates.ts'
import { unwrapJson } from '#shared/domain/turn/json-wrapper.ts'

/** A text of a message, read. */
export type TextReading = {
  /** What was said, code included, harness removed: the text itself where it has none. */
  words: string
  /** The words without fenced code, where words are left then, and without quotation marks around them all. */
  question: string
  /** Why pieces of the text were left out, one for each piece. */
  leftOut: readonly HarnessReason[]
}

type ReadOptions = {
  /** Whether the model wrote the text. */
  isModel?: boolean
  /** Whether the message has words in another part: an unknown element is harness then. */
  hasOtherWords?: boolean
}

/** Reads one text part of a message: the words in it, and what programs have put around them. Linear. */
export function readText(
  text: string,
  { isModel = false, hasOtherWords = false }: ReadOptions = {},
): TextReading {
  if (isModel) return readSegments(withoutUnopenedThought(text), true, hasOtherWords)
  const { inner, leftOut: wrappers } = unwrap(text)
  const unquoted = unquote(inner)
  const reading = readSegments(unquoted, false, hasOtherWords)
  const template = findTemplateQuestion(reading.words)
  const leftOut = [...wrappers, ...reading.leftOut]
  if (!template) {
    const words = reading.words === unquoted ? inner : reading.words
    return { words, question: reading.question, leftOut }
  }
  const words = reading.words.slice(template.start, template.end).trim()
  return { words, question: words, leftOut: [...leftOut, 'template'] }
}

/**
 * The text that a user's message asks with: without its harness, and without code where it has words.
 * Empty when nothing but harness is in it.
 */
export const readQuestion = (text: string): string => readText(text).question

/** The text inside wrappers that hold all of it. */
function unwrap(text: string): { inner: string; leftOut: HarnessReason[] } {
  const trimmed = text.trim()
  const form = templateForms.find(({ beginning }) => trimmed.startsWith(beginning))
  if (form) {
    const { wordsAfter, reason } = form
    const at = wordsAfter === undefined ? -1 : trimmed.lastIndexOf(wordsAfter)
    const inner = at < 0 ? '' : trimmed.slice(at + wordsAfter!.length).trim()
    return { inner, leftOut: [reason] }
  }
  const json = unwrapJson(trimmed)
  if (json !== undefined) return { inner: json, leftOut: ['template'] }
  return { inner: text, leftOut: [] }
}

/**
 * opencode puts the prompt of its command line in quotation marks. They are no part of the question, but stay in
 * words of which nothing is left out: a person may have written them.
 */
function unquote(text: string): string {
  const trimmed = text.trim()
  const isQuoted =
    trimmed.length > 2 && trimmed.startsWith('"') && trimmed.indexOf('"', 1) === trimmed.length - 1
  return isQuoted ? trimmed.slice(1, -1) : text
}

/** Some templates open the model's thought themselves: the text begins within it. */
function withoutUnopenedThought(text: string): string {
  const closing = text.indexOf('</think>')
  const opening = text.indexOf('<think>')
  if (closing >= 0 && (opening < 0 || opening > closing)) return `<think>${text}`
  return closing < 0 && text.trimStart().startsWith('<think>') ? `${text}</think>` : text
}

function readSegments(text: string, isModel: boolean, hasOtherWords: boolean): TextReading {
  const segments = segmentText(text, isModel)
  if (segments.every(({ kind }) => kind === 'words'))
    return { words: text, question: text, leftOut: [] }
  const hasWords =
    hasOtherWords ||
    segments.some(
      ({ kind, start, end }) => kind === 'words' && text.slice(start, end).trim() !== '',
    )
  const isLeftOut = ({ kind }: Segment): boolean =>
    kind === 'harness' || (kind === 'paste' && hasWords)
  const joined = (parts: readonly Segment[]): string =>
    parts.map(({ start, end }) => text.slice(start, end)).join('')
  const kept = segments.filter(segment => !isLeftOut(segment))
  const words = kept.length === segments.length ? text : joinWords(joined(kept))
  const spoken = kept.filter(({ kind }) => kind === 'words')
  return {
    words,
    question: hasWords && spoken.length > 0 ? joinWords(joined(spoken)) || words : words,
    leftOut: segments.filter(isLeftOut).flatMap(({ reason }) => (reason ? [reason] : [])),
  }
}

/** Where something was taken out, one blank line is left. */
const joinWords = (text: string): string => text.replaceAll(/\n{3,}/g, '\n\n').trim()
