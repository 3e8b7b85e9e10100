/** Byte ranges to remove: start, end, start, end, in rising order. */
export type Removals = number[]

/** A text to insert at an offset, in place of the bytes up to `end`. */
export type Insertion = { at: number; end?: number; text: string }

/**
 * Collects what removing members of one object takes out, each with one comma: what remains is an object again,
 * every other byte unchanged. Every member is to be named, in order, then the end of the object.
 */
export class MemberRemovals {
  readonly #removals: Removals
  /** The run of removed members that has begun, and where the last retained member ended. */
  #start = -1
  #end = -1
  #retainedEnd = -1

  constructor(removals: Removals) {
    this.#removals = removals
  }

  /** The member with the name at `name` and the value that ends at `end` is removed. */
  remove(name: number, end: number): void {
    if (this.#start < 0) this.#start = name
    this.#end = end
  }

  /** This member is retained. What is removed of its value comes after this call: removals rise. */
  retain(name: number, end: number): void {
    if (this.#start >= 0) this.#removals.push(this.#start, name)
    this.#start = -1
    this.#retainedEnd = end
  }

  finish(): void {
    if (this.#start < 0) return
    this.#removals.push(this.#retainedEnd < 0 ? this.#start : this.#retainedEnd, this.#end)
  }
}

/** A removal or an insertion, with the place of its text in the bytes that come of all of them. */
type Splice<Inserted> = {
  at: number
  end: number
  text: Buffer
  movedTo: number
  insertion?: Inserted
}

/** Removals and insertions of the same bytes, in the order of the bytes; insertions at one offset as they were given. */
export class Splices<Inserted extends Insertion> {
  readonly #splices: readonly Splice<Inserted>[]

  constructor(removals: Removals, insertions: readonly Inserted[]) {
    const splices: Splice<Inserted>[] = insertions.map(insertion => {
      const { at, end = at, text } = insertion
      return { at, end, text: Buffer.from(text), movedTo: at, insertion }
    })
    const nothing = Buffer.alloc(0)
    for (let index = 0; index < removals.length; index += 2) {
      const at = removals[index]!
      splices.push({ at, end: removals[index + 1]!, text: nothing, movedTo: at })
    }
    splices.sort((one, other) => one.at - other.at)
    let moved = 0
    for (const splice of splices) {
      splice.movedTo += moved
      moved += splice.text.length - (splice.end - splice.at)
    }
    this.#splices = splices
  }

  /** @returns the spliced bytes; the same buffer when there are no splices. */
  apply(bytes: Buffer): Buffer {
    if (this.#splices.length === 0) return bytes
    let read = 0
    const pieces = this.#splices.flatMap(({ at, end, text }) => {
      const before = bytes.subarray(read, at)
      read = end
      return [before, text]
    })
    return Buffer.concat([...pieces, bytes.subarray(read)])
  }

  /** Where a byte of the client's is after the splices; those at its offset come after it. */
  movedOffset(offset: number): number {
    const last = this.#splices.findLast(({ at }) => at < offset)
    if (!last) return offset
    const { end, text, movedTo } = last
    return movedTo + text.length + Math.max(0, offset - end)
  }

  /** Where the texts of the insertions are after the splices, in the order of the bytes. */
  insertedSpans(): { insertion: Inserted; at: number; bytes: number }[] {
    return this.#splices.flatMap(({ insertion, movedTo: at, text: { length: bytes } }) =>
      insertion ? [{ insertion, at, bytes }] : [],
    )
  }
}
