import { findElements, type TextElement } from '#shared/domain/turn/elements.ts'
import { elementForm, type HarnessReason } from '#shared/domain/turn/harness-elements.ts'

/** A stretch of a text. */
export type Segment = {
  /**
   * `words`: a person's (or the model's) own; `code`: fenced; `paste`: an unknown element, which is harness
   * beside words and otherwise all that was said.
   */
  kind: 'words' | 'code' | 'paste' | 'harness'
  start: number
  end: number
  reason?: HarnessReason
}

/**
 * Divides a text at its fenced code and at the elements of programs, in one pass. Elements in code are part
 * of the code, and elements in elements part of the outer one.
 */
export function segmentText(text: string, isModel: boolean): Segment[] {
  const elements = text.includes('</') ? findElements(text) : []
  const fences = findFences(text)
  const segments: Segment[] = []
  let from = 0
  let nextFence = 0
  const add = (segment: Segment): void => {
    if (segment.start > from) segments.push({ kind: 'words', start: from, end: segment.start })
    segments.push(segment)
    from = segment.end
  }
  const addFencesBefore = (end: number): void => {
    for (; nextFence < fences.length && fences[nextFence]!.start < end; nextFence++) {
      const fence = fences[nextFence]!
      if (fence.start >= from) add({ kind: 'code', ...fence })
    }
  }
  const spansLines = createLineSpanTest(text)
  for (const element of elements) {
    if (element.start < from) continue
    addFencesBefore(element.start)
    if (element.start < from) continue
    const use = classifyElement(text, element, { from, isModel, spansLines: spansLines(element) })
    if (use === undefined) continue
    if (use.kind === 'words') addUnwrapped(element, add)
    else if (use.kind === 'harness') addHarness(text, element, use, add)
    else add({ ...use, start: element.start, end: element.end })
  }
  addFencesBefore(text.length)
  if (from < text.length) segments.push({ kind: 'words', start: from, end: text.length })
  return segments
}

type ElementUse = Pick<Segment, 'kind' | 'reason'>

/** @returns undefined for an element that is part of the words around it. */
function classifyElement(
  text: string,
  element: TextElement,
  { from, isModel, spansLines }: { from: number; isModel: boolean; spansLines: boolean },
): ElementUse | undefined {
  const form = elementForm(element.name)
  const startsLine = element.start === from || isAtLineStart(text, element.start)
  if (form !== undefined) {
    const { reason } = form
    if (isModel && reason !== 'thinking' && reason !== 'tool') return undefined
    const isDistinctive = element.name.includes('-') || (isModel && reason === 'thinking')
    const isBlock = isDistinctive
      ? (startsLine || spansLines) && text[element.start - 1] !== '`'
      : startsLine && (spansLines || isAtLineEnd(text, element.end))
    if (!isBlock) return undefined
    return reason === undefined ? { kind: 'words' } : { kind: 'harness', reason }
  }
  if (isModel || !startsLine || !spansLines || !hasProgramName(element.rawName)) return undefined
  return { kind: isPastedMarkup(text, element) ? 'code' : 'paste', reason: 'context' }
}

/** Whether an element holds a line break; elements are asked about by their start. */
function createLineSpanTest(text: string): (element: TextElement) => boolean {
  let next = -1
  return ({ start, end }) => {
    if (next < start) {
      const found = text.indexOf('\n', start)
      next = found < 0 ? Infinity : found
    }
    return next < end
  }
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

function addUnwrapped(
  { start, innerStart, innerEnd, end }: TextElement,
  add: (segment: Segment) => void,
): void {
  add({ kind: 'harness', start, end: innerStart })
  if (innerEnd > innerStart) add({ kind: 'words', start: innerStart, end: innerEnd })
  add({ kind: 'harness', start: innerEnd, end })
}

/** What Claude Code puts before a message that was typed while its tools ran. */
const queuedMessage = 'The user sent the following message:'
const queuedMessageEnd = '\n\nPlease address this message'

/** Adds an element as harness, all but a message of the user that it passes on. */
function addHarness(
  text: string,
  outer: TextElement,
  use: ElementUse,
  add: (segment: Segment) => void,
): void {
  const queuedAt = outer.innerStart + countSpaces(text, outer.innerStart)
  if (outer.name === 'system-reminder' && text.startsWith(queuedMessage, queuedAt)) {
    const start = queuedAt + queuedMessage.length
    const length = text.slice(start, outer.innerEnd).indexOf(queuedMessageEnd)
    const end = length < 0 ? outer.innerEnd : start + length
    add({ ...use, start: outer.start, end: start })
    if (end > start) add({ kind: 'words', start, end })
    return add({ kind: 'harness', start: end, end: outer.end })
  }
  add({ ...use, start: outer.start, end: outer.end })
}

const countSpaces = (text: string, from: number): number => {
  let at = from
  while (text[at] === '\n' || text[at] === ' ' || text[at] === '\r') at++
  return at - from
}

function isAtLineStart(text: string, at: number): boolean {
  let before = at - 1
  while (text[before] === ' ' || text[before] === '\t') before--
  return before < 0 || text[before] === '\n'
}

function isAtLineEnd(text: string, at: number): boolean {
  let after = at
  while (text[after] === ' ' || text[after] === '\t' || text[after] === '\r') after++
  return after >= text.length || text[after] === '\n'
}

/** Code between two lines of three backticks or tildes; a fence that is never closed is none. */
function findFences(text: string): { start: number; end: number }[] {
  if (!text.includes('```') && !text.includes('~~~')) return []
  const fences: { start: number; end: number }[] = []
  let open: { start: number; marker: string } | undefined
  for (let start = 0; start < text.length;) {
    const lineEnd = text.indexOf('\n', start)
    const end = lineEnd < 0 ? text.length : lineEnd
    const marker = fenceMarker(text, start, end)
    if (marker !== undefined && open === undefined) open = { start, marker }
    else if (
      open !== undefined &&
      marker === open.marker &&
      text.slice(start, end).trim() === marker
    ) {
      fences.push({ start: open.start, end })
      open = undefined
    }
    start = end + 1
  }
  return fences
}

function fenceMarker(text: string, start: number, end: number): string | undefined {
  let at = start
  while (at < end && at < start + 4 && text[at] === ' ') at++
  const marker = text.slice(at, at + 3)
  return marker === '```' || marker === '~~~' ? marker : undefined
}
