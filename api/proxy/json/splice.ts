import { forEachMember, valueEnd, type VisitMember } from '#api/proxy/json/walk.ts'

/** Places to leave out: start and end, start and end, in rising order. */
export type Removals = number[]

/** A text to put in at a place, or over what stands up to `end`. */
export type Insertion = { at: number; end?: number; text: string }

/**
 * Visits the members of an object that stay, and cuts out those that `drops` wants gone, each with one
 * comma: what remains is an object again, every other byte as it was.
 *
 * @returns the object's end.
 */
export function forEachRetainedMember(
  bytes: Buffer,
  at: number,
  removals: Removals,
  shouldRemove: (name: number, nameEnd: number, value: number) => boolean,
  visit: VisitMember,
): number {
  let runStart = -1
  let retainedEnd = -1
  let removedEnd = -1
  const end = forEachMember(bytes, at, (name, nameEnd, value) => {
    if (shouldRemove(name, nameEnd, value)) {
      if (runStart < 0) runStart = name
      removedEnd = valueEnd(bytes, value)
      return removedEnd
    }
    // Before the visit, which may cut inside: cuts stay in order.
    if (runStart >= 0) removals.push(runStart, name)
    runStart = -1
    retainedEnd = visit(name, nameEnd, value)
    return retainedEnd
  })
  if (runStart >= 0) removals.push(retainedEnd < 0 ? runStart : retainedEnd, removedEnd)
  return end
}

/** @returns the bytes without the cuts and with the inserts; the same bytes when there are none. */
export function applySplices(
  bytes: Buffer,
  removals: Removals,
  insertions: readonly Insertion[],
): Buffer {
  if (removals.length === 0 && insertions.length === 0) return bytes
  const pieces = insertions
    .map(({ at, end = at, text }) => ({ at, end, piece: Buffer.from(text) }))
    .sort((one, other) => one.at - other.at)
  const added = pieces.reduce((sum, { at, end, piece }) => sum + piece.length - (end - at), 0)
  let removed = 0
  for (let index = 0; index < removals.length; index += 2)
    removed += removals[index + 1]! - removals[index]!

  const out = Buffer.allocUnsafe(bytes.length + added - removed)
  let written = 0
  let read = 0
  const copyTo = (position: number): void => {
    written += bytes.copy(out, written, read, position)
  }
  let next = 0
  const insertUpTo = (position: number): void => {
    for (let piece = pieces[next]; piece && piece.at <= position; piece = pieces[++next]) {
      copyTo(piece.at)
      written += piece.piece.copy(out, written)
      read = piece.end
    }
  }
  for (let index = 0; index < removals.length; index += 2) {
    insertUpTo(removals[index]!)
    copyTo(removals[index]!)
    read = removals[index + 1]!
  }
  insertUpTo(bytes.length)
  copyTo(bytes.length)
  return out
}
