import { grown, picked, trimmed } from '#shared/search/columns/column.ts'
import { createEndings, type Endings } from '#shared/search/index/expiry-column.ts'
import { textHashOf } from '#shared/search/columns/hash.ts'
import { createLabels, type Labels } from '#shared/search/index/labels.ts'
import { createTexts, type Texts } from '#shared/search/index/texts.ts'
import type { Memory, Role } from '#shared/domain/memory.ts'

/** What memories say, in columns; numbered in the order they were added. A record never changes. */
export type Records = {
  readonly count: number
  readonly bytes: number
  /** @throws RangeError when all texts together would pass 4 GiB. */
  add(memory: Memory): void
  at(record: number): number
  role(record: number): Role
  importance(record: number): number | undefined
  tokens(record: number): number
  speaker(record: number): string | undefined
  /** Epoch milliseconds; undefined where it stays. */
  expiresAt(record: number): number | undefined
  /** Tags and author of a shared memory. */
  label(record: number): Pick<Memory, 'tags' | 'author'>
  text(record: number): string
  /** 53 bits of a hash of the text, normalised (NFC) and trimmed. */
  textHash(record: number): number
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): Records
  /** Gives back the room kept for growing. */
  trim(): void
}

const roles: readonly Role[] = ['user', 'assistant', 'system']
/** A mark holds the role in its low two bits and the importance above them, 0 for none. */
const roleBits = 2
const roleMask = 3

/** A name in a list and a map, beside its characters: about this much. */
const speakerBytes = 100

type Columns = {
  at: Float64Array
  hash: Float64Array
  tokens: Uint32Array
  speaker: Uint32Array
  mark: Uint8Array
}

export function createRecords(): Records {
  const columns = {
    at: new Float64Array(0),
    hash: new Float64Array(0),
    tokens: new Uint32Array(0),
    speaker: new Uint32Array(0),
    mark: new Uint8Array(0),
  }
  return over(columns, createTexts(), createSpeakers(), createLabels(), createEndings())
}

function over(
  held: Columns,
  texts: Texts,
  speakers: Speakers,
  labels: Labels,
  endings: Endings,
): Records {
  let columns = held

  return {
    get count() {
      return texts.count
    },
    get bytes() {
      const { at, hash, tokens, speaker, mark } = columns
      const wide = at.byteLength + hash.byteLength
      const narrow = tokens.byteLength + speaker.byteLength + mark.byteLength
      return wide + narrow + texts.bytes + speakers.bytes + labels.bytes + endings.bytes
    },

    add(memory) {
      const record = texts.count
      texts.add(memory.text)
      columns = {
        at: grown(columns.at, record + 1),
        hash: grown(columns.hash, record + 1),
        tokens: grown(columns.tokens, record + 1),
        speaker: grown(columns.speaker, record + 1),
        mark: grown(columns.mark, record + 1),
      }
      columns.at[record] = memory.at
      columns.hash[record] = textHashOf(memory.text)
      columns.tokens[record] = memory.tokens
      columns.speaker[record] = speakers.number(memory.speaker)
      columns.mark[record] = ((memory.importance ?? 0) << roleBits) | roles.indexOf(memory.role)
      labels.put(record, memory)
      endings.put(record, memory.expiresAt)
    },

    at: record => columns.at[record]!,
    role: record => roles[columns.mark[record]! & roleMask]!,
    importance: record => columns.mark[record]! >> roleBits || undefined,
    tokens: record => columns.tokens[record]!,
    speaker: record => speakers.name(columns.speaker[record]!),
    expiresAt: record => endings.of(record),
    label: record => labels.of(record),
    text: record => texts.text(record),
    textHash: record => columns.hash[record]!,

    pick(records) {
      const kept = {
        at: picked(columns.at, records),
        hash: picked(columns.hash, records),
        tokens: picked(columns.tokens, records),
        speaker: picked(columns.speaker, records),
        mark: picked(columns.mark, records),
      }
      const ended = endings.pick(records)
      return over(kept, texts.pick(records), speakers, labels.pick(records), ended)
    },

    trim() {
      const { count } = texts
      columns = {
        at: trimmed(columns.at, count),
        hash: trimmed(columns.hash, count),
        tokens: trimmed(columns.tokens, count),
        speaker: trimmed(columns.speaker, count),
        mark: trimmed(columns.mark, count),
      }
      texts.trim()
      labels.trim(count)
      endings.trim(count)
    },
  }
}

type Speakers = {
  readonly bytes: number
  /** 0 for nobody; names keep their number for good. */
  number(name: string | undefined): number
  name(number: number): string | undefined
}

function createSpeakers(): Speakers {
  const names: (string | undefined)[] = [undefined]
  const numbers = new Map<string, number>()
  let characters = 0

  return {
    get bytes() {
      return numbers.size * speakerBytes + characters * 2
    },
    number(name) {
      if (name === undefined) return 0
      const known = numbers.get(name)
      if (known) return known
      numbers.set(name, names.length)
      characters += name.length
      return names.push(name) - 1
    },
    name: number => names[number],
  }
}
