import type { TextElement } from '#shared/domain/turn/elements.ts'
import { unwrapJson } from '#shared/domain/turn/json-wrapper.ts'
import { findTemplateQuestion } from '#shared/domain/turn/labels.ts'
import { promptElementKind } from '#shared/domain/turn/prompt-elements.ts'
import { readText } from '#shared/domain/turn/read-text.ts'
import { segmentText, type ElementClassifier, type Segment } from '#shared/domain/turn/segments.ts'

/**
 * The text that a user's message asks with: without what programs, templates and quoted documents put around it, and
 * without code where it has words. Empty when nothing but that is in it. It decides what is looked for, never
 * what is stored. Linear.
 */
export function readQuestion(text: string): string {
  const trimmed = text.trim()
  const own = readText({ text, isModel: false, messageHolds: part => text.includes(part) })
  const inner = own.leftOut.length > 0 ? own.words : (unwrapJson(trimmed) ?? text)
  const { words, question } = readSegments(unquote(inner))
  const template = findTemplateQuestion(words)
  return template ? words.slice(template.start, template.end).trim() : question
}

/** opencode puts the prompt of its command line in quotation marks. */
function unquote(text: string): string {
  const trimmed = text.trim()
  const isQuoted =
    trimmed.length > 2 && trimmed.startsWith('"') && trimmed.indexOf('"', 1) === trimmed.length - 1
  return isQuoted ? trimmed.slice(1, -1) : text
}

function readSegments(text: string): { words: string; question: string } {
  const segments = segmentText(text, classifierFor(text))
  if (segments.every(({ kind }) => kind === 'words')) return { words: text, question: text }
  const hasWords = segments.some(
    ({ kind, start, end }) => kind === 'words' && text.slice(start, end).trim() !== '',
  )
  const joined = (parts: readonly Segment[]): string =>
    parts
      .map(({ start, end }) => text.slice(start, end))
      .join('')
      .replaceAll(/\n{3,}/g, '\n\n')
      .trim()
  const kept = segments.filter(({ kind }) => kind !== 'left-out' && !(kind === 'paste' && hasWords))
  const words = kept.length === segments.length ? text : joined(kept)
  const spoken = kept.filter(({ kind }) => kind === 'words')
  return { words, question: hasWords && spoken.length > 0 ? joined(spoken) || words : words }
}

const classifierFor =
  (text: string): ElementClassifier =>
  (element, { startsLine, spansLines, endsLine }) => {
    const { name, rawName, start } = element
    const kind = promptElementKind(name)
    if (kind === undefined) {
      if (!startsLine || !spansLines || !hasProgramName(rawName)) return undefined
      return { kind: isPastedMarkup(text, element) ? 'code' : 'paste' }
    }
    const isBlock = name.includes('-')
      ? (startsLine || spansLines) && text[start - 1] !== '`'
      : startsLine && (spansLines || endsLine)
    if (!isBlock) return undefined
    return kind === 'words' ? { kind } : { kind, mark: name }
  }

/** Lower case with `_` or `-`, as programs name their elements. */
const hasProgramName = (rawName: string): boolean =>
  /^[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+$/.test(rawName)

/** A custom element of a web page, or something that the person's own words introduce. */
function isPastedMarkup(
  text: string,
  { rawName, start, innerStart, innerEnd }: TextElement,
): boolean {
  const before = text.slice(Math.max(0, start - 200), start).trimEnd()
  if (before.endsWith(':')) return true
  if (!rawName.includes('-')) return false
  const attributes = text.slice(start, innerStart)
  const inner = text.slice(innerStart, Math.min(innerEnd, innerStart + 200)).trimStart()
  return inner.startsWith('<') || /\s(?:class|id|style|slot|v-|on|:|@)\S*=/.test(attributes)
}
