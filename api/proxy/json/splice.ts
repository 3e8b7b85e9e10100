import { forEachMember, valueEnd, type VisitMember } from '#api/proxy/json/walk.ts'

/** Byte ranges to remove: start, end, start, end, in rising order. */
export type Removals = number[]

/** A text to insert at an offset, in place of the bytes up to `end`. */
export type Insertion = { at: number; end?: number; text: string }

/** Where an inserted text is in the bytes that came of it. */
export type InsertedSpan<Inserted extends Insertion> = {
  insertion: Inserted
  at: number
  bytes: number
}

/**
 * Visits the members of an object that are retained, and adds those for which `shouldRemove` is true to
 * `removals`, each with one comma: what remains is an object again, every other byte unchanged.
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
    // Before the visit, which may add removals of its own: they must rise.
    if (runStart >= 0) removals.push(runStart, name)
    runStart = -1
    retainedEnd = visit(name, nameEnd, value)
    return retainedEnd
  })
  if (runStart >= 0) removals.push(retainedEnd < 0 ? runStart : retainedEnd, removedEnd)
  return end
}

/** @returns the bytes without the removals and with the insertions; the same buffer when there are none. */
export function applySplices(
  bytes: Buffer,
  removals: Removals,
  insertions: readonly Insertion[],
): Buffer {
  if (removals.length === 0 && insertions.length === 0) return bytes
  const sorted = insertions
    .map(({ at, end = at, text }) => ({ at, end, inserted: Buffer.from(text) }))
    .sort((one, other) => one.at - other.at)
  const added = sorted.reduce((sum, { at, end, inserted }) => sum + inserted.length - (end - at), 0)
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
    for (let splice = sorted[next]; splice && splice.at <= position; splice = sorted[++next]) {
      copyTo(splice.at)
      written += splice.inserted.copy(out, written)
      read = splice.end
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

/** Where a byte of the client's is after the same splices; those at its offset come after it. */
export function movedOffset(
  removals: Removals,
  insertions: readonly Insertion[],
  offset: number,
): number {
  let moved = offset
  for (let index = 0; index < removals.length; index += 2) {
    const [start, end] = [removals[index]!, removals[index + 1]!]
    if (start < offset) moved -= Math.min(end, offset) - start
  }
  for (const { at, end = at, text } of insertions) {
    if (at < offset) moved += Buffer.byteLength(text) - (end - at)
  }
  return moved
}

/** Where the texts of the insertions are after the same splices, in the order of the bytes. */
export function insertedSpans<Inserted extends Insertion>(
  removals: Removals,
  insertions: readonly Inserted[],
): InsertedSpan<Inserted>[] {
  const sorted = insertions.toSorted((one, other) => one.at - other.at)
  let grown = 0
  return sorted.map(insertion => {
    const { at, end = at, text } = insertion
    const bytes = Buffer.byteLength(text)
    const span = { insertion, at: movedOffset(removals, [], at) + grown, bytes }
    grown += bytes - (end - at)
    return span
  })
}
