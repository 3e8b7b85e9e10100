import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'
import { createExpiryColumn, type ExpiryColumn } from '#shared/search/index/expiry-column.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import {
  createTagAuthorColumn,
  type TagAuthorColumn,
} from '#shared/search/index/tag-author-column.ts'
import { createTextColumn, type TextColumn } from '#shared/search/index/text-column.ts'
import type { Memory, Role } from '#shared/domain/memory.ts'

/** What memories say, in columns; numbered in the order they were added. A record never changes. */
export type MemoryColumns = {
  readonly count: number
  readonly bytes: number
  /** @throws RangeError when all texts together would pass 4 GiB. */
  add(memory: Memory): void
  timeAt(record: number): number
  role(record: number): Role
  importance(record: number): number | undefined
  tokens(record: number): number
  speaker(record: number): string | undefined
  /** Epoch milliseconds; undefined where it stays. */
  expiresAt(record: number): number | undefined
  /** Tags and author of a shared memory. */
  tagsAndAuthor(record: number): Pick<Memory, 'tags' | 'author'>
  text(record: number): string
  /** 53 bits of a hash of the text, normalised (NFC) and trimmed. */
  textHash(record: number): number
  /** These records alone, numbered from 0 in the order given. */
  pick(records: Uint32Array): MemoryColumns
  /** Gives back the room kept for growing. */
  trim(): void
}

const roles: readonly Role[] = ['user', 'assistant', 'system']
/** A mark holds the role in its low two bits and the importance above them, 0 for none. */
const roleBits = 2
const roleMask = 3

/** A name in a list and a map, beside its characters: about this much. */
const internedNameBytes = 100

type ColumnArrays = {
  at: Float64Array
  hash: Float64Array
  tokens: Uint32Array
  speaker: Uint32Array
  roleAndImportance: Uint8Array
}

export function createMemoryColumns(): MemoryColumns {
  const columns = {
    at: new Float64Array(0),
    hash: new Float64Array(0),
    tokens: new Uint32Array(0),
    speaker: new Uint32Array(0),
    roleAndImportance: new Uint8Array(0),
  }
  return buildMemoryColumns(
    columns,
    createTextColumn(),
    createSpeakerPool(),
    createTagAuthorColumn(),
    createExpiryColumn(),
  )
}

function buildMemoryColumns(
  initial: ColumnArrays,
  texts: TextColumn,
  speakers: SpeakerPool,
  tagsAndAuthors: TagAuthorColumn,
  expiry: ExpiryColumn,
): MemoryColumns {
  let columns = initial

  return {
    get count() {
      return texts.count
    },
    get bytes() {
      const { at, hash, tokens, speaker, roleAndImportance } = columns
      const wide = at.byteLength + hash.byteLength
      const narrow = tokens.byteLength + speaker.byteLength + roleAndImportance.byteLength
      return wide + narrow + texts.bytes + speakers.bytes + tagsAndAuthors.bytes + expiry.bytes
    },

    add(memory) {
      const record = texts.count
      texts.add(memory.text)
      columns = {
        at: ensureCapacity(columns.at, record + 1),
        hash: ensureCapacity(columns.hash, record + 1),
        tokens: ensureCapacity(columns.tokens, record + 1),
        speaker: ensureCapacity(columns.speaker, record + 1),
        roleAndImportance: ensureCapacity(columns.roleAndImportance, record + 1),
      }
      columns.at[record] = memory.at
      columns.hash[record] = hashText(memory.text)
      columns.tokens[record] = memory.tokens
      columns.speaker[record] = speakers.intern(memory.speaker)
      columns.roleAndImportance[record] =
        ((memory.importance ?? 0) << roleBits) | roles.indexOf(memory.role)
      tagsAndAuthors.set(record, memory)
      expiry.set(record, memory.expiresAt)
    },

    timeAt: record => columns.at[record]!,
    role: record => roles[columns.roleAndImportance[record]! & roleMask]!,
    importance: record => columns.roleAndImportance[record]! >> roleBits || undefined,
    tokens: record => columns.tokens[record]!,
    speaker: record => speakers.name(columns.speaker[record]!),
    expiresAt: record => expiry.get(record),
    tagsAndAuthor: record => tagsAndAuthors.get(record),
    text: record => texts.text(record),
    textHash: record => columns.hash[record]!,

    pick(records) {
      const selectedColumns = {
        at: selectRows(columns.at, records),
        hash: selectRows(columns.hash, records),
        tokens: selectRows(columns.tokens, records),
        speaker: selectRows(columns.speaker, records),
        roleAndImportance: selectRows(columns.roleAndImportance, records),
      }
      const selectedExpiry = expiry.pick(records)
      return buildMemoryColumns(
        selectedColumns,
        texts.pick(records),
        speakers,
        tagsAndAuthors.pick(records),
        selectedExpiry,
      )
    },

    trim() {
      const { count } = texts
      columns = {
        at: trimToLength(columns.at, count),
        hash: trimToLength(columns.hash, count),
        tokens: trimToLength(columns.tokens, count),
        speaker: trimToLength(columns.speaker, count),
        roleAndImportance: trimToLength(columns.roleAndImportance, count),
      }
      texts.trim()
      tagsAndAuthors.trim(count)
      expiry.trim(count)
    },
  }
}

type SpeakerPool = {
  readonly bytes: number
  /** 0 for nobody; names keep their number for good. */
  intern(name: string | undefined): number
  name(number: number): string | undefined
}

function createSpeakerPool(): SpeakerPool {
  const names: (string | undefined)[] = [undefined]
  const numbers = new Map<string, number>()
  let characters = 0

  return {
    get bytes() {
      return numbers.size * internedNameBytes + characters * 2
    },
    intern(name) {
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
