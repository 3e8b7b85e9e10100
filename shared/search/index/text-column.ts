import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'

const bytesMax = 0xffffffff

/** Texts as UTF-8 in one buffer, numbered in the order they were added. */
export class TextColumn {
  #utf8: Uint8Array
  /** The same bytes, for fast conversion to and from strings. */
  #buffer: Buffer
  /** Where each text ends; it begins where the one before ends. */
  #endOffsets: Uint32Array
  #count: number

  constructor(utf8 = new Uint8Array(0), endOffsets = new Uint32Array(0)) {
    this.#utf8 = utf8
    this.#buffer = Buffer.from(utf8.buffer)
    this.#endOffsets = endOffsets
    this.#count = endOffsets.length
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#utf8.byteLength + this.#endOffsets.byteLength
  }

  /** @throws RangeError when all texts together would exceed 4 GiB. */
  add(text: string) {
    const start = this.#startOf(this.#count)
    const end = start + Buffer.byteLength(text)
    if (end > bytesMax) throw new RangeError('The texts of an index exceed 4 GiB')
    if (end > this.#utf8.length) this.#replaceBytes(ensureCapacity(this.#utf8, end))
    this.#buffer.write(text, start)
    this.#endOffsets = ensureCapacity(this.#endOffsets, this.#count + 1)
    this.#endOffsets[this.#count++] = end
  }

  text(number: number): string {
    return this.#buffer.toString('utf8', this.#startOf(number), this.#endOffsets[number])
  }

  /** Returns a column of these texts only, numbered from 0 in the order given. */
  pick(numbers: Uint32Array): TextColumn {
    let length = 0
    const pickedEndOffsets = numbers.map(
      number => (length += this.#endOffsets[number]! - this.#startOf(number)),
    )
    const picked = new Uint8Array(length)
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers[i]!
      const text = this.#utf8.subarray(this.#startOf(number), this.#endOffsets[number])
      picked.set(text, pickedEndOffsets[i]! - text.length)
    }
    return new TextColumn(picked, pickedEndOffsets)
  }

  /** What `restore` takes. */
  save() {
    const utf8 = this.#utf8.subarray(0, this.#startOf(this.#count))
    return { utf8, endOffsets: this.#endOffsets.subarray(0, this.#count) }
  }

  restore({ utf8, endOffsets }: ReturnType<TextColumn['save']>): this {
    this.#replaceBytes(utf8)
    this.#endOffsets = endOffsets
    this.#count = endOffsets.length
    return this
  }

  /** Frees unused capacity. */
  trim() {
    this.#replaceBytes(trimToLength(this.#utf8, this.#startOf(this.#count)))
    this.#endOffsets = trimToLength(this.#endOffsets, this.#count)
  }

  #startOf(number: number): number {
    return number === 0 ? 0 : this.#endOffsets[number - 1]!
  }

  #replaceBytes(utf8: Uint8Array) {
    this.#utf8 = utf8
    this.#buffer = Buffer.from(utf8.buffer)
  }
}
