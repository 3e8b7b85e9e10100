import {
  findKnownElement,
  findKnownText,
  type MarkedText,
} from '#shared/domain/turn/find-known-mark.ts'
import { segmentText, type ElementClassifier } from '#shared/domain/turn/segments.ts'

/** A piece of a text that is left out: the mark of a known program, and how long it is. */
export type LeftOutPiece = { mark: string; characters: number }

/** A text of a message, without the marks of known programs. */
export type TextReading = {
  /** The text itself where it has none. */
  words: string
  leftOut: readonly LeftOutPiece[]
}

/** Reads one text part of a message of a proxied call: all that no known program has written. Linear. */
export function readText(from: MarkedText): TextReading {
  if (from.isModel) return readSegments({ ...from, text: withoutUnopenedThought(from.text) })
  const trimmed = from.text.trim()
  const form = findKnownText(trimmed)
  if (!form) return readSegments(from)
  const { name, beginning, wordsAfter } = form
  if (wordsAfter === undefined)
    return { words: '', leftOut: [{ mark: name, characters: trimmed.length }] }
  const at = wordsAfter === '' ? beginning.length : trimmed.lastIndexOf(wordsAfter)
  if (at < 0) return readSegments(from)
  const cut = at + wordsAfter.length
  const { words, leftOut } = readSegments({ ...from, text: trimmed.slice(cut).trim() })
  return { words, leftOut: [{ mark: name, characters: cut }, ...leftOut] }
}

/** Some templates open the model's thought themselves: the text begins within it. */
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
    // What stands in an element of no program is part of that, whatever its name.
    if (!known) return startsLine && spansLines ? { kind: 'code' } : undefined
    const isDistinctive = name.includes('-') || from.isModel
    const isBlock = isDistinctive
      ? (startsLine || spansLines) && from.text[start - 1] !== '`'
      : startsLine && (spansLines || endsLine)
    if (!isBlock || end <= start) return undefined
    return known.isAround ? { kind: 'words' } : { kind: 'left-out', mark: name }
  }

/** Joins what is kept; where a piece was cut out, white space with a line break becomes one blank line. */
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
