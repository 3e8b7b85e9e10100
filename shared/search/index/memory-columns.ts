import { MetadataColumn } from '#shared/search/index/metadata-column.ts'
import type { Metadata, MetadataFilter } from '#shared/domain/metadata.ts'
import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'
import { SparseColumn } from '#shared/search/index/sparse-column.ts'
import { pieceKey, readPieceKey, type MessagePiece } from '#shared/search/index/piece-key.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { TagAuthorColumn } from '#shared/search/index/tag-author-column.ts'
import { TextColumn } from '#shared/search/index/text-column.ts'
import type { Memory, Role } from '#shared/domain/memory.ts'

const roles: readonly Role[] = ['user', 'assistant', 'system']
/** `roleAndImportance`: the role in the low two bits, the importance above, 0 for none. */
const roleBits = 2
const roleMask = 3

/** Estimated size of an interned speaker name without its characters. */
const internedNameBytes = 100

type Columns = {
  readonly texts: TextColumn
  readonly speakers: SpeakerPool
  readonly tagsAndAuthors: TagAuthorColumn
  /** When records expire, in epoch milliseconds. */
  readonly expiry: SparseColumn
  /** Which piece of which message a record is: see `pieceKey`. */
  readonly pieces: SparseColumn
  readonly metadata: MetadataColumn
  at: Float64Array
  hash: Float64Array
  tokens: Uint32Array
  speaker: Uint32Array
  roleAndImportance: Uint8Array
}

/**
 * The fields of memories, column by column, except id and vector. Records are numbered in the order
 * they were added and never change.
 */
export class MemoryColumns {
  readonly #columns: Columns

  constructor(columns: Columns = createColumns()) {
    this.#columns = columns
  }

  get count(): number {
    return this.#columns.texts.count
  }

  get bytes(): number {
    const { at, hash, tokens, speaker, roleAndImportance } = this.#columns
    const { texts, speakers, tagsAndAuthors, expiry, pieces, metadata } = this.#columns
    const wide = at.byteLength + hash.byteLength
    const narrow = tokens.byteLength + speaker.byteLength + roleAndImportance.byteLength
    const sparse = tagsAndAuthors.bytes + expiry.bytes + pieces.bytes + metadata.bytes
    return wide + narrow + texts.bytes + speakers.bytes + sparse
  }

  /** @throws RangeError when all texts together would exceed 4 GiB. */
  add(memory: Memory) {
    const columns = this.#columns
    const record = columns.texts.count
    columns.texts.add(memory.text)
    columns.at = ensureCapacity(columns.at, record + 1)
    columns.hash = ensureCapacity(columns.hash, record + 1)
    columns.tokens = ensureCapacity(columns.tokens, record + 1)
    columns.speaker = ensureCapacity(columns.speaker, record + 1)
    columns.roleAndImportance = ensureCapacity(columns.roleAndImportance, record + 1)
    columns.at[record] = memory.at
    columns.hash[record] = hashText(memory.text)
    columns.tokens[record] = memory.tokens
    columns.speaker[record] = columns.speakers.intern(memory.speaker)
    columns.roleAndImportance[record] =
      ((memory.importance ?? 0) << roleBits) | roles.indexOf(memory.role)
    columns.tagsAndAuthors.set(record, memory)
    columns.expiry.set(record, memory.expiresAt)
    columns.pieces.set(record, pieceKey(memory.piece))
    columns.metadata.set(record, memory.metadata)
  }

  timeAt(record: number): number {
    return this.#columns.at[record]!
  }

  role(record: number): Role {
    return roles[this.#columns.roleAndImportance[record]! & roleMask]!
  }

  importance(record: number): number | undefined {
    return this.#columns.roleAndImportance[record]! >> roleBits || undefined
  }

  tokens(record: number): number {
    return this.#columns.tokens[record]!
  }

  speaker(record: number): string | undefined {
    return this.#columns.speakers.name(this.#columns.speaker[record]!)
  }

  /** Epoch milliseconds; undefined when the memory does not expire. */
  expiresAt(record: number): number | undefined {
    return this.#columns.expiry.get(record)
  }

  /** Which piece of which message it is; undefined when the message is whole. */
  piece(record: number): MessagePiece | undefined {
    const key = this.#columns.pieces.get(record)
    return key === undefined ? undefined : readPieceKey(key)
  }

  metadata(record: number): Metadata | undefined {
    return this.#columns.metadata.get(record)
  }

  /** Whether records match a filter of their metadata. */
  metadataMatcher(filter: MetadataFilter): (record: number) => boolean {
    return this.#columns.metadata.matcher(filter)
  }

  /** Tags and author of a shared memory. */
  tagsAndAuthor(record: number): Pick<Memory, 'tags' | 'author'> {
    return this.#columns.tagsAndAuthors.get(record)
  }

  text(record: number): string {
    return this.#columns.texts.text(record)
  }

  /** 53 bits of a hash of the text, normalised (NFC) and trimmed. */
  textHash(record: number): number {
    return this.#columns.hash[record]!
  }

  /** These records only, numbered from 0 in the order given. */
  pick(records: Uint32Array): MemoryColumns {
    const columns = this.#columns
    return new MemoryColumns({
      texts: columns.texts.pick(records),
      speakers: columns.speakers,
      tagsAndAuthors: columns.tagsAndAuthors.pick(records),
      expiry: columns.expiry.pick(records),
      pieces: columns.pieces.pick(records),
      metadata: columns.metadata.pick(records),
      at: selectRows(columns.at, records),
      hash: selectRows(columns.hash, records),
      tokens: selectRows(columns.tokens, records),
      speaker: selectRows(columns.speaker, records),
      roleAndImportance: selectRows(columns.roleAndImportance, records),
    })
  }

  /** Frees unused capacity. */
  trim() {
    const columns = this.#columns
    const { count } = columns.texts
    columns.at = trimToLength(columns.at, count)
    columns.hash = trimToLength(columns.hash, count)
    columns.tokens = trimToLength(columns.tokens, count)
    columns.speaker = trimToLength(columns.speaker, count)
    columns.roleAndImportance = trimToLength(columns.roleAndImportance, count)
    columns.texts.trim()
    columns.tagsAndAuthors.trim(count)
    columns.expiry.trim(count)
    columns.pieces.trim(count)
    columns.metadata.trim(count)
  }
}

function createColumns(): Columns {
  return {
    texts: new TextColumn(),
    speakers: new SpeakerPool(),
    tagsAndAuthors: new TagAuthorColumn(),
    expiry: new SparseColumn(),
    pieces: new SparseColumn(),
    metadata: new MetadataColumn(),
    at: new Float64Array(0),
    hash: new Float64Array(0),
    tokens: new Uint32Array(0),
    speaker: new Uint32Array(0),
    roleAndImportance: new Uint8Array(0),
  }
}

/** Each speaker name once, with a number that never changes. */
class SpeakerPool {
  readonly #names: (string | undefined)[] = [undefined]
  readonly #numbers = new Map<string, number>()
  #characters = 0

  get bytes(): number {
    return this.#numbers.size * internedNameBytes + this.#characters * 2
  }

  /** The number of a name; 0 for undefined. */
  intern(name: string | undefined): number {
    if (name === undefined) return 0
    const known = this.#numbers.get(name)
    if (known) return known
    this.#numbers.set(name, this.#names.length)
    this.#characters += name.length
    return this.#names.push(name) - 1
  }

  name(number: number): string | undefined {
    return this.#names[number]
  }
}
