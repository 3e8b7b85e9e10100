import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'
import {
  matchesMetadata,
  metadataFromTerms,
  metadataTerms,
  type Metadata,
  type MetadataFilter,
} from '#shared/domain/metadata.ts'

/** Estimated size of an interned set of terms without its characters. */
const internedSetBytes = 200

/**
 * The metadata of records: each distinct set of terms once, and its number for each record. Takes no memory
 * while no record has any.
 */
export class MetadataColumn {
  /** 0 for none; may be shorter than there are records. */
  #numbers = new Uint32Array(0)
  readonly #sets: (readonly string[])[] = []
  readonly #numberBySet = new Map<string, number>()
  #characters = 0

  get bytes(): number {
    return this.#numbers.byteLength + this.#sets.length * internedSetBytes + this.#characters * 2
  }

  set(record: number, metadata: Metadata | undefined) {
    if (metadata !== undefined) this.#setTerms(record, metadataTerms(metadata))
  }

  get(record: number): Metadata | undefined {
    const terms = this.#terms(record)
    return terms && metadataFromTerms(terms)
  }

  /** Whether records match a filter; each distinct set is compared once. */
  matcher(filter: MetadataFilter): (record: number) => boolean {
    const verdicts = new Uint8Array(this.#sets.length + 1)
    return record => {
      const number = this.#numbers[record] ?? 0
      if (number === 0) return false
      verdicts[number] ||= matchesMetadata(filter, this.#sets[number - 1]!) ? 2 : 1
      return verdicts[number] === 2
    }
  }

  /** These records only, numbered from 0 in the order given; sets of no record are dropped. */
  pick(records: Uint32Array): MetadataColumn {
    const picked = new MetadataColumn()
    for (let i = 0; i < records.length; i++) {
      const terms = this.#terms(records[i]!)
      if (terms) picked.#setTerms(i, terms)
    }
    return picked
  }

  /** Frees the capacity beyond `count` records. */
  trim(count: number) {
    this.#numbers = trimToLength(this.#numbers, Math.min(count, this.#numbers.length))
  }

  #terms(record: number): readonly string[] | undefined {
    return this.#sets[(this.#numbers[record] ?? 0) - 1]
  }

  #setTerms(record: number, terms: readonly string[]) {
    this.#numbers = ensureCapacity(this.#numbers, record + 1)
    this.#numbers[record] = this.#intern(terms)
  }

  #intern(terms: readonly string[]): number {
    const name = terms.join('\n')
    const known = this.#numberBySet.get(name)
    if (known !== undefined) return known
    const number = this.#sets.push(terms)
    this.#numberBySet.set(name, number)
    this.#characters += 2 * name.length
    return number
  }
}
