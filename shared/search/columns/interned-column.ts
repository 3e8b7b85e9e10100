import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'

/** Estimated size of a value without the characters of its key. */
const entryBytes = 200

/** Values of some of many records, each distinct one once. Takes no memory while no record has one. */
export class InternedColumn<Value> {
  readonly #keyOf: (value: Value) => string
  /** The number of the value of each record, from 1; 0 for none. May be shorter than there are records. */
  #numbers = new Uint32Array(0)
  readonly #values: Value[] = []
  readonly #numberByKey = new Map<string, number>()
  #characters = 0

  /** @param keyOf equal for equal values */
  constructor(keyOf: (value: Value) => string) {
    this.#keyOf = keyOf
  }

  get bytes(): number {
    return this.#numbers.byteLength + this.#values.length * entryBytes + this.#characters * 2
  }

  set(record: number, value: Value | undefined) {
    if (value === undefined) return
    this.#numbers = ensureCapacity(this.#numbers, record + 1)
    this.#numbers[record] = this.#intern(value)
  }

  get(record: number): Value | undefined {
    const number = this.#numbers[record] ?? 0
    // A read at -1 would look for a property of that name.
    return number === 0 ? undefined : this.#values[number - 1]
  }

  /** Returns whether records match; each distinct value is compared once, no value matches nothing. */
  matcher(isMatch: (value: Value) => boolean): (record: number) => boolean {
    const verdicts = new Uint8Array(this.#values.length + 1)
    return record => {
      const number = this.#numbers[record] ?? 0
      if (number === 0) return false
      verdicts[number] ||= isMatch(this.#values[number - 1]!) ? 2 : 1
      return verdicts[number] === 2
    }
  }

  /** Returns a column of these records only, numbered from 0 in the order given, without other values. */
  pick(records: Uint32Array): InternedColumn<Value> {
    const picked = new InternedColumn(this.#keyOf)
    const pickedNumbers = new Uint32Array(this.#values.length + 1)
    for (let i = 0; i < records.length; i++) {
      const number = this.#numbers[records[i]!] ?? 0
      if (number === 0) continue
      pickedNumbers[number] ||= picked.#intern(this.#values[number - 1]!)
      picked.#numbers = ensureCapacity(picked.#numbers, i + 1)
      picked.#numbers[i] = pickedNumbers[number]
    }
    return picked
  }

  /** What `restore` takes. */
  save(count: number) {
    return { numbers: this.#numbers.subarray(0, count), values: this.#values }
  }

  restore(saved: ReturnType<InternedColumn<Value>['save']>): this {
    this.#numbers = saved.numbers
    for (const value of saved.values) this.#intern(value)
    return this
  }

  /** Frees the capacity beyond `count` records. */
  trim(count: number) {
    this.#numbers = trimToLength(this.#numbers, Math.min(count, this.#numbers.length))
  }

  #intern(value: Value): number {
    const key = this.#keyOf(value)
    const known = this.#numberByKey.get(key)
    if (known !== undefined) return known
    const number = this.#values.push(value)
    this.#numberByKey.set(key, number)
    this.#characters += 2 * key.length
    return number
  }
}
