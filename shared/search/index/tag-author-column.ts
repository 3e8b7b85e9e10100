import type { Memory } from '#shared/domain/memory.ts'
import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'

type TagsAndAuthor = Pick<Memory, 'tags' | 'author'>

/** Estimated size of an interned value without its characters. */
const internedEntryBytes = 200

/**
 * Tags and author of each record. Takes no memory while no record has any, as in every private
 * vault.
 */
export class TagAuthorColumn {
  /** Numbers in the pool; may be shorter than there are records. */
  #numbers: Uint32Array
  readonly #pool: InternPool

  constructor(numbers: Uint32Array = new Uint32Array(0), pool = new InternPool()) {
    this.#numbers = numbers
    this.#pool = pool
  }

  get bytes(): number {
    return this.#numbers.byteLength + this.#pool.bytes
  }

  set(record: number, value: TagsAndAuthor) {
    if (value.tags === undefined && value.author === undefined) return
    this.#numbers = ensureCapacity(this.#numbers, record + 1)
    this.#numbers[record] = this.#pool.intern(value)
  }

  get(record: number): TagsAndAuthor {
    return this.#pool.get(this.#numbers[record] ?? 0)
  }

  /** These records only, numbered from 0 in the order given. */
  pick(records: Uint32Array): TagAuthorColumn {
    const numbers = this.#pool.bytes > 0 ? selectRows(this.#numbers, records) : this.#numbers
    return new TagAuthorColumn(numbers, this.#pool)
  }

  /** Frees the capacity beyond `count` records. */
  trim(count: number) {
    this.#numbers = trimToLength(this.#numbers, Math.min(count, this.#numbers.length))
  }
}

/** Each distinct value once, with a number that never changes. */
class InternPool {
  readonly #values: TagsAndAuthor[] = [{}]
  readonly #numbers = new Map<string, number>()
  #characters = 0

  get bytes(): number {
    return this.#numbers.size * internedEntryBytes + this.#characters * 2
  }

  /** The number of a value, from 1; 0 is the empty value. */
  intern({ tags, author }: TagsAndAuthor): number {
    const key = JSON.stringify([author ?? null, tags ?? null])
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    this.#numbers.set(key, this.#values.length)
    this.#characters += key.length
    const value = { ...(tags && { tags }), ...(author !== undefined && { author }) }
    return this.#values.push(value) - 1
  }

  get(number: number): TagsAndAuthor {
    return this.#values[number]!
  }
}
