import { kebabCase, knownPassages, knownSpans } from './marks.ts'

/** An XML-like element of a text; offsets in UTF-16 units. */
export type TextElement = {
  /** In kebab case: `user_query` and `userQuery` are `user-query`. */
  name: string
  /** As written. */
  rawName: string
  start: number
  innerStart: number
  innerEnd: number
  end: number
}

/**
 * A tag with a name of at most 64 characters and attributes of at most 511; one that closes itself (`<br/>`) is none.
 * It ends before the next `<`, so that the search is linear.
 */
const tagPattern = /<(\/?)([A-Za-z][\w.:-]{0,63})(?:>|[ \n\t\r][^<>]{0,510}(?<!\/)>)/g

/** Further tags are read as words. */
const tagsMax = 20_000

/**
 * The elements of a text by their start, nested ones included. A tag without its counterpart is no element.
 * Each closing tag takes the last open one of its name.
 */
function findElements(text: string): TextElement[] {
  const open = new Map<string, { rawName: string; start: number; end: number }[]>()
  const elements: TextElement[] = []
  let tags = 0
  for (const { 0: tag, 1: slash, 2: rawName = '', index } of text.matchAll(tagPattern)) {
    if (++tags > tagsMax) break
    const name = kebabCase(rawName)
    const end = index + tag.length
    const waiting = open.get(name)
    const opening = slash ? waiting?.pop() : undefined
    if (opening) {
      const { start, rawName } = opening
      elements.push({ name, rawName, start, innerStart: opening.end, innerEnd: index, end })
    } else if (!slash) {
      if (waiting) waiting.push({ rawName, start: index, end })
      else open.set(name, [{ rawName, start: index, end }])
    }
  }
  return elements.toSorted((one, other) => one.start - other.start)
}

export type Segment = ElementUse & { start: number; end: number }

type ElementUse =
  /** The author's own words; fenced code, or an element that stays as it is. */
  | { kind: 'words' | 'code' }
  /** An unknown element: it is asked with only where the message has no other words. */
  | { kind: 'paste' }
  | { kind: 'left-out'; mark: string }

/** @returns `words` where only the tags are left out; undefined for an element that is part of the words around it. */
export type ElementClassifier = (
  element: TextElement,
  place: { startsLine: boolean; spansLines: boolean; endsLine: boolean },
) => ElementUse | undefined

/**
 * Divides a text at its fenced code and at the elements of programs, in one pass. Elements in code belong to the
 * code, inner elements to the outer one.
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

/** The spans that known programs write between two lines of their own. */
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

/** Whether an element holds a line break. Call it in the order of the elements' starts: that makes it linear. */
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

/** Adds an element that is left out, except for words of the user that it passes on. */
function addLeftOut(
  text: string,
  { name, start, innerStart, innerEnd, end }: TextElement,
  use: Extract<ElementUse, { kind: 'left-out' }>,
  add: (segment: Segment) => void,
): void {
  const beginsAt = innerStart + countSpaces(text, innerStart)
  const passage = knownPassages.find(
    ({ element, begin }) => element === name && text.startsWith(begin, beginsAt),
  )
  if (!passage) return add({ ...use, start, end })
  const wordsStart = beginsAt + passage.begin.length
  const length = text.slice(wordsStart, innerEnd).indexOf(passage.end)
  const wordsEnd = length < 0 ? innerEnd : wordsStart + length
  add({ ...use, start, end: wordsStart })
  if (wordsEnd > wordsStart) add({ kind: 'words', start: wordsStart, end: wordsEnd })
  add({ ...use, start: wordsEnd, end })
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
