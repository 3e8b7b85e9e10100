import type { Memory } from '#shared/domain/memory.ts'
import { grown, picked, trimmed } from '#shared/search/columns/column.ts'

type Label = Pick<Memory, 'tags' | 'author'>

/** Tags and authors of records; where none has any, as in every private vault, they take no room. */
export type Labels = {
  readonly bytes: number
  put(record: number, label: Label): void
  of(record: number): Label
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): Labels
  trim(count: number): void
}

/** A label in a list and a map, beside its characters: about this much. */
const labelBytes = 200

export function createLabels(): Labels {
  return over(new Uint32Array(0), createNumbered())
}

function over(held: Uint32Array, labels: Numbered): Labels {
  let column = held
  return {
    get bytes() {
      return column.byteLength + labels.bytes
    },
    put(record, label) {
      if (label.tags === undefined && label.author === undefined) return
      column = grown(column, record + 1)
      column[record] = labels.numberOf(label)
    },
    of: record => labels.at(column[record] ?? 0),
    pick: records => over(labels.bytes > 0 ? picked(column, records) : column, labels),
    trim(count) {
      column = trimmed(column, Math.min(count, column.length))
    },
  }
}

/** Each label once, however many records bear it. */
type Numbered = {
  readonly bytes: number
  /** From 1; a label keeps its number for good. */
  numberOf(label: Label): number
  at(number: number): Label
}

function createNumbered(): Numbered {
  const labels: Label[] = [{}]
  const numbers = new Map<string, number>()
  let characters = 0
  return {
    get bytes() {
      return numbers.size * labelBytes + characters * 2
    },
    numberOf({ tags, author }) {
      const key = JSON.stringify([author ?? null, tags ?? null])
      const known = numbers.get(key)
      if (known !== undefined) return known
      numbers.set(key, labels.length)
      characters += key.length
      return labels.push({ ...(tags && { tags }), ...(author !== undefined && { author }) }) - 1
    },
    at: number => labels[number]!,
  }
}
