import type { Memory } from '#shared/domain/memory.ts'
import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'

type TagsAndAuthor = Pick<Memory, 'tags' | 'author'>

/** Tags and authors of records; where none has any, as in every private vault, they take no room. */
export type TagAuthorColumn = {
  readonly bytes: number
  set(record: number, label: TagsAndAuthor): void
  get(record: number): TagsAndAuthor
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): TagAuthorColumn
  trim(count: number): void
}

/** A label in a list and a map, beside its characters: about this much. */
const internedEntryBytes = 200

export function createTagAuthorColumn(): TagAuthorColumn {
  return buildColumn(new Uint32Array(0), createInternPool())
}

function buildColumn(initial: Uint32Array, pool: InternPool): TagAuthorColumn {
  let column = initial
  return {
    get bytes() {
      return column.byteLength + pool.bytes
    },
    set(record, label) {
      if (label.tags === undefined && label.author === undefined) return
      column = ensureCapacity(column, record + 1)
      column[record] = pool.intern(label)
    },
    get: record => pool.get(column[record] ?? 0),
    pick: records => buildColumn(pool.bytes > 0 ? selectRows(column, records) : column, pool),
    trim(count) {
      column = trimToLength(column, Math.min(count, column.length))
    },
  }
}

/** Each label once, however many records bear it. */
type InternPool = {
  readonly bytes: number
  /** From 1; a label keeps its number for good. */
  intern(label: TagsAndAuthor): number
  get(number: number): TagsAndAuthor
}

function createInternPool(): InternPool {
  const labels: TagsAndAuthor[] = [{}]
  const numbers = new Map<string, number>()
  let characters = 0
  return {
    get bytes() {
      return numbers.size * internedEntryBytes + characters * 2
    },
    intern({ tags, author }) {
      const key = JSON.stringify([author ?? null, tags ?? null])
      const known = numbers.get(key)
      if (known !== undefined) return known
      numbers.set(key, labels.length)
      characters += key.length
      return labels.push({ ...(tags && { tags }), ...(author !== undefined && { author }) }) - 1
    },
    get: number => labels[number]!,
  }
}
