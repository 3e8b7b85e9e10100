import { promptElementKind, request, template } from '#shared/domain/turn/marks.ts'
import {
  segmentText,
  type ElementClassifier,
  type Segment,
  type TextElement,
} from '#shared/domain/turn/segments.ts'
import { readText } from '#shared/domain/turn/text.ts'

/**
 * The text that a user's message asks with, without the words of programs, templates and quoted documents, and without
 * code where it has words; empty where nothing else is in it. It chooses what is looked for, never what is stored. Linear.
 */
export function readQuestion(text: string): string {
  const trimmed = text.trim()
  const own = readText({ text, isModel: false, messageHolds: part => text.includes(part) })
  const inner = own.leftOut.length > 0 ? own.words : (unwrapJson(trimmed) ?? text)
  const { words, question } = readSegments(unquote(inner))
  const asked = findTemplateQuestion(words)
  return asked ? words.slice(asked.start, asked.end).trim() : question
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

/** Whether an element is one of a web page, or introduced by the person's own words. */
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

const wrapperMax = 256 * 1024

/** The user's words in a text that is one JSON object; undefined for other texts and for a pasted log or error. */
function unwrapJson(text: string): string | undefined {
  if (!text.startsWith('{') || !text.endsWith('}') || text.length > wrapperMax) return undefined
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return undefined
  const members = new Map(Object.entries(value))
  if (request.pasted.some(name => members.has(name))) return undefined
  const name = request.words.find(name => isSentence(members.get(name)))
  return name === undefined ? undefined : (members.get(name) as string)
}

const isSentence = (value: unknown): boolean => typeof value === 'string' && /\S\s+\S/.test(value)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const kindByLabel = new Map<string, LabelledLine['kind']>([
  ...template.answerLabels.map(label => [label, 'answer'] as const),
  ...template.contextLabels.map(label => [label, 'context'] as const),
  ...template.questionLabels.map(label => [label, 'question'] as const),
])

type LabelledLine = {
  kind: 'question' | 'context' | 'answer'
  start: number
  /** Where the text behind the label begins. */
  textStart: number
}

const linesMax = 20_000
const labelMax = 40
/** Shorter context, and words on the label's line, may be a person's own introduction. */
const quotedContextMin = 300

/**
 * The question of a filled-in prompt template: the text behind its last question label. Its context,
 * instructions and answer label are the template's.
 *
 * @returns undefined where the text is no template: a person may label their own lines.
 */
function findTemplateQuestion(text: string): { start: number; end: number } | undefined {
  return findInlineQuestion(text) ?? findLabelledQuestion(text)
}

function findInlineQuestion(text: string): { start: number; end: number } | undefined {
  if (!beginsWithInstruction(text)) return undefined
  const [label, at] = template.inlineLabels
    .map((label): [string, number] => [label, text.lastIndexOf(label)])
    .reduce((last, found) => (found[1] > last[1] ? found : last))
  if (at <= 0) return undefined
  const start = at + label.length
  const answer = labelledLines(text.slice(start)).find(({ kind }) => kind === 'answer')
  const end = answer ? start + answer.start : text.length
  return text.slice(start, end).trim() === '' ? undefined : { start, end }
}

function findLabelledQuestion(text: string): { start: number; end: number } | undefined {
  const lines = labelledLines(text)
  const isQuestion = ({ kind, textStart }: LabelledLine, index: number): boolean =>
    kind === 'question' && text.slice(textStart, lines[index + 1]?.start).trim() !== ''
  const index = lines.findLastIndex(isQuestion)
  const question = lines[index]
  if (question === undefined || !isTemplate(text, lines)) return undefined
  return { start: question.textStart, end: lines[index + 1]?.start ?? text.length }
}

/** Whether labels are a program's: with instructions, an empty answer or long context. */
function isTemplate(text: string, lines: readonly LabelledLine[]): boolean {
  const contexts = lines.filter(({ kind }) => kind === 'context')
  const quotesAtLength = lines.some(
    ({ kind, textStart }, index) =>
      kind === 'context' &&
      isBlankBefore(text, textStart) &&
      (lines[index + 1]?.start ?? text.length) - textStart >= quotedContextMin,
  )
  const last = lines.at(-1)!
  const awaitsAnswer = last.kind === 'answer' && text.slice(last.textStart).trim() === ''
  const instructs = beginsWithInstruction(text)
  if (contexts.length === 0) return awaitsAnswer && instructs
  return awaitsAnswer || instructs || quotesAtLength
}

/** Whether nothing follows on the line. */
function isBlankBefore(text: string, from: number): boolean {
  let at = from
  while (text[at] === ' ' || text[at] === '\r') at++
  return at >= text.length || text[at] === '\n'
}

function beginsWithInstruction(text: string): boolean {
  const beginning = text
    .trimStart()
    .slice(0, 64)
    .toLowerCase()
    .replace(/^[#*\s]+/, '')
  return template.instructions.some(instruction => beginning.startsWith(instruction))
}

function labelledLines(text: string): LabelledLine[] {
  const lines: LabelledLine[] = []
  let start = 0
  for (let count = 0; start < text.length && count < linesMax; count++) {
    const lineEnd = text.indexOf('\n', start)
    const end = lineEnd < 0 ? text.length : lineEnd
    const labelled = readLabel(text, start, end)
    if (labelled) lines.push(labelled)
    start = end + 1
  }
  return lines
}

function readLabel(text: string, start: number, lineEnd: number): LabelledLine | undefined {
  const line = text.slice(start, Math.min(lineEnd, start + labelMax + 1))
  const colon = line.search(/[:.：]/)
  if (colon < 0) return undefined
  const label = line
    .slice(0, colon)
    .replaceAll(/[#*_\s-]+/g, ' ')
    .trim()
    .toLowerCase()
  const kind = kindByLabel.get(label)
  // Markup around the label may close behind the colon.
  const textStart = start + colon + (line.startsWith('**', colon + 1) ? 3 : 1)
  return kind && { kind, start, textStart }
}
