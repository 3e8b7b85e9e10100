import { eachMember, valueEnd, type VisitMember } from '#api/proxy/json/walk.ts'

/** Places to leave out: start and end, start and end, in rising order. */
export type Cuts = number[]

/** A text to put in at a place, or over what stands up to `end`. */
export type Insert = { at: number; end?: number; text: string }

/**
 * Visits the members of an object that stay, and cuts out those that `drops` wants gone, each with one
 * comma: what remains is an object again, every other byte as it was.
 *
 * @returns the object's end.
 */
export function eachKept(
  bytes: Buffer,
  at: number,
  cuts: Cuts,
  drops: (name: number, nameEnd: number, value: number) => boolean,
  visit: VisitMember,
): number {
  let runStart = -1
  let keptEnd = -1
  let droppedEnd = -1
  const end = eachMember(bytes, at, (name, nameEnd, value) => {
    if (drops(name, nameEnd, value)) {
      if (runStart < 0) runStart = name
      droppedEnd = valueEnd(bytes, value)
      return droppedEnd
    }
    // Before the visit, which may cut inside: cuts stay in order.
    if (runStart >= 0) cuts.push(runStart, name)
    runStart = -1
    keptEnd = visit(name, nameEnd, value)
    return keptEnd
  })
  if (runStart >= 0) cuts.push(keptEnd < 0 ? runStart : keptEnd, droppedEnd)
  return end
}

/** @returns the bytes without the cuts and with the inserts; the same bytes when there are none. */
export function spliced(bytes: Buffer, cuts: Cuts, inserts: readonly Insert[]): Buffer {
  if (cuts.length === 0 && inserts.length === 0) return bytes
  const pieces = inserts
    .map(({ at, end = at, text }) => ({ at, end, piece: Buffer.from(text) }))
    .sort((one, other) => one.at - other.at)
  const added = pieces.reduce((sum, { at, end, piece }) => sum + piece.length - (end - at), 0)
  let removed = 0
  for (let index = 0; index < cuts.length; index += 2) removed += cuts[index + 1]! - cuts[index]!

  const out = Buffer.allocUnsafe(bytes.length + added - removed)
  let written = 0
  let read = 0
  const copyTo = (place: number): void => {
    written += bytes.copy(out, written, read, place)
  }
  let next = 0
  const insertUpTo = (place: number): void => {
    for (let piece = pieces[next]; piece && piece.at <= place; piece = pieces[++next]) {
      copyTo(piece.at)
      written += piece.piece.copy(out, written)
      read = piece.end
    }
  }
  for (let index = 0; index < cuts.length; index += 2) {
    insertUpTo(cuts[index]!)
    copyTo(cuts[index]!)
    read = cuts[index + 1]!
  }
  insertUpTo(bytes.length)
  copyTo(bytes.length)
  return out
}
