import { findKnownElement, findKnownText, type MarkedText } from './marks.ts'
import { segmentText, type ElementClassifier } from './segments.ts'

export type LeftOutPiece = { mark: string; characters: number }

export type TextReading = {
  /** The text without the marks of known programs. */
  words: string
  leftOut: readonly LeftOutPiece[]
}

/** Leaves out of a text part of a proxied call what known programs have written. Linear. */
export function readText(from: MarkedText): TextReading {
  const trimmed = from.text.trim()
  const form = findKnownText(trimmed, from.isModel)
  if (!form) {
    return readSegments(from.isModel ? { ...from, text: withoutUnopenedThought(from.text) } : from)
  }
  const { name, beginning, wordsAfter } = form
  if (wordsAfter === undefined)
    return { words: '', leftOut: [{ mark: name, characters: trimmed.length }] }
  const at = wordsAfter === '' ? beginning.length : trimmed.lastIndexOf(wordsAfter)
  if (at < 0) return readSegments(from)
  const cut = at + wordsAfter.length
  const { words, leftOut } = readSegments({ ...from, text: trimmed.slice(cut).trim() })
  return { words, leftOut: [{ mark: name, characters: cut }, ...leftOut] }
}

/** Adds the missing tag of a thought: some templates write the opening one, and an answer may be cut off. */
function withoutUnopenedThought(text: string): string {
  const closing = text.indexOf('</think>')
  const opening = text.indexOf('<think>')
  if (closing >= 0 && (opening < 0 || opening > closing)) return `<think>${text}`
  return closing < 0 && text.trimStart().startsWith('<think>') ? `${text}</think>` : text
}

function readSegments(from: MarkedText): TextReading {
  const { text } = from
  const segments = segmentText(text, classifierFor(from))
  const leftOut = segments.flatMap(({ start, end, ...use }) =>
    use.kind === 'left-out' ? [{ mark: use.mark, characters: end - start }] : [],
  )
  if (leftOut.length === 0) return { words: text, leftOut }
  const kept = segments.map(({ kind, start, end }) =>
    kind === 'left-out' ? undefined : text.slice(start, end),
  )
  return { words: joinAroundCuts(kept), leftOut }
}

const classifierFor =
  (from: MarkedText): ElementClassifier =>
  ({ rawName, name, start, end }, { startsLine, spansLines, endsLine }) => {
    const known = findKnownElement(from, rawName, start)
    // Marks inside an element of no program belong to that element.
    if (!known) return startsLine && spansLines ? { kind: 'code' } : undefined
    const isDistinctive = name.includes('-') || from.isModel
    const isBlock = isDistinctive
      ? (startsLine || spansLines) && from.text[start - 1] !== '`'
      : startsLine && (spansLines || endsLine)
    if (!isBlock || end <= start) return undefined
    return known.isAround ? { kind: 'words' } : { kind: 'left-out', mark: name }
  }

/** Joins the kept pieces; around a cut, white space with a line break becomes one blank line. */
function joinAroundCuts(pieces: readonly (string | undefined)[]): string {
  const joined: string[] = []
  let isCut = false
  /** White space around a cut. */
  let gap = ''
  for (const piece of pieces) {
    if (piece === undefined) {
      isCut = true
      for (let last = joined.pop(); last !== undefined; last = joined.pop()) {
        const kept = last.trimEnd()
        gap = last.slice(kept.length) + gap
        if (kept !== '') {
          joined.push(kept)
          break
        }
      }
      continue
    }
    const after = isCut ? piece.trimStart() : piece
    gap += piece.slice(0, piece.length - after.length)
    if (after === '') continue
    if (isCut && joined.length > 0) joined.push(gap.includes('\n') ? '\n\n' : gap)
    joined.push(after)
    isCut = false
    gap = ''
  }
  return joined.join('')
}

/** How many pieces of a proxied message were left out, by the mark of the program. */
export type LeftOutCounts = { [mark: string]: number }

export type LeftOutTotal = { mark: string; pieces: number; characters: number }

/** The pieces and characters of each mark, in the order of their first pieces. */
export function totalLeftOut(pieces: readonly LeftOutPiece[]): LeftOutTotal[] {
  const totals = new Map<string, LeftOutTotal>()
  for (const { mark, characters } of pieces) {
    const total = totals.get(mark) ?? { mark, pieces: 0, characters: 0 }
    totals.set(mark, { mark, pieces: total.pieces + 1, characters: total.characters + characters })
  }
  return [...totals.values()]
}

export const countMarks = (pieces: readonly LeftOutPiece[]): LeftOutCounts =>
  Object.fromEntries(totalLeftOut(pieces).map(({ mark, pieces }) => [mark, pieces]))
