import { findElements, type TextElement } from '#shared/domain/turn/elements.ts'
import { knownSpans } from '#shared/domain/turn/find-known-mark.ts'

/** A stretch of a text. */
export type Segment = ElementUse & { start: number; end: number }

/** What an element of a text is. */
type ElementUse =
  /** A person's (or the model's) own; fenced code, or an element that stays as it is. */
  | { kind: 'words' | 'code' }
  /** An unknown element: it is not asked with beside words, and is otherwise all that was said. */
  | { kind: 'paste' }
  /** Left out; the mark names it. */
  | { kind: 'left-out'; mark: string }

/** Where an element stands. */
type ElementPlace = { startsLine: boolean; spansLines: boolean; endsLine: boolean }

/** @returns undefined for an element that is part of the words around it; `words`: only its tags are left out. */
export type ElementClassifier = (
  element: TextElement,
  place: ElementPlace,
) => ElementUse | undefined

/**
 * Divides a text at its fenced code and at the elements of programs, in one pass. Elements in code are part
 * of the code, and elements in elements part of the outer one.
 */
export function segmentText(text: string, classify: ElementClassifier): Segment[] {
  const elements = text.includes('</') ? findElements(text) : []
  const blocks = [...elements, ...findSpans(text)].toSorted((a, b) => a.start - b.start)
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
  for (const block of blocks) {
    if (block.start < from) continue
    addFencesBefore(block.start)
    if (block.start < from) continue
    if (!('rawName' in block)) {
      add({ kind: 'left-out', ...block })
      continue
    }
    const use = classify(block, {
      startsLine: block.start === from || isAtLineStart(text, block.start),
      spansLines: spansLines(block),
      endsLine: isAtLineEnd(text, block.end),
    })
    if (use === undefined) continue
    if (use.kind === 'words') addUnwrapped(block, add)
    else if (use.kind === 'left-out') addLeftOut(text, block, use, add)
    else add({ ...use, start: block.start, end: block.end })
  }
  addFencesBefore(text.length)
  if (from < text.length) segments.push({ kind: 'words', start: from, end: text.length })
  return segments
}

/** What known programs write between two lines of their own. */
function findSpans(text: string): { mark: string; start: number; end: number }[] {
  return knownSpans.flatMap(({ name, begin, end }) => {
    const found: { mark: string; start: number; end: number }[] = []
    for (let start = text.indexOf(begin); start >= 0;) {
      const last = text.indexOf(end, start)
      if (last < 0) break
      if (isAtLineStart(text, start)) found.push({ mark: name, start, end: last + end.length })
      start = text.indexOf(begin, last)
    }
    return found
  })
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

function addUnwrapped(
  { name, start, innerStart, innerEnd, end }: TextElement,
  add: (segment: Segment) => void,
): void {
  add({ kind: 'left-out', mark: name, start, end: innerStart })
  if (innerEnd > innerStart) add({ kind: 'words', start: innerStart, end: innerEnd })
  add({ kind: 'left-out', mark: name, start: innerEnd, end })
}

/** What Claude Code puts before a message that was typed while its tools ran. */
const queuedMessage = 'The user sent the following message:'
const queuedMessageEnd = '\n\nPlease address this message'

/** Adds an element that is left out, all but a message of the user that it passes on. */
function addLeftOut(
  text: string,
  outer: TextElement,
  use: Extract<ElementUse, { kind: 'left-out' }>,
  add: (segment: Segment) => void,
): void {
  const queuedAt = outer.innerStart + countSpaces(text, outer.innerStart)
  if (outer.name === 'system-reminder' && text.startsWith(queuedMessage, queuedAt)) {
    const start = queuedAt + queuedMessage.length
    const length = text.slice(start, outer.innerEnd).indexOf(queuedMessageEnd)
    const end = length < 0 ? outer.innerEnd : start + length
    add({ ...use, start: outer.start, end: start })
    if (end > start) add({ kind: 'words', start, end })
    return add({ ...use, start: end, end: outer.end })
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
