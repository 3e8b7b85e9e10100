import type { Memory, Role } from '#shared/domain/memory.ts'
import { termsPredicate, type Test } from '#shared/domain/condition.ts'
import { metadataFromTerms, metadataTerms, type Metadata } from '#shared/domain/metadata.ts'
import { ensureCapacity, selectRows, trimToLength } from '#shared/search/columns/column.ts'
import { InternedColumn } from '#shared/search/columns/interned-column.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { TextColumn } from '#shared/search/index/text-column.ts'

const roles: readonly Role[] = ['user', 'assistant', 'system']
/** `roleAndImportance` has the role in its low two bits, the importance above, 0 for none. */
const roleBits = 2
const roleMask = 3

type Columns = {
  readonly texts: TextColumn
  readonly speakers: InternedColumn<string>
  readonly tagsAndAuthors: InternedColumn<Pick<Memory, 'tags' | 'author'>>
  /** When records expire, in epoch milliseconds. */
  readonly expiry: SparseColumn
  /** Which piece of which message a record is: see `pieceKey`. */
  readonly pieces: SparseColumn
  /** The terms of metadata. */
  readonly metadata: InternedColumn<readonly string[]>
  at: Float64Array
  hash: Float64Array
  tokens: Uint32Array
  roleAndImportance: Uint8Array
}

const createColumns = (): Columns => ({
  texts: new TextColumn(),
  speakers: new InternedColumn(name => name),
  tagsAndAuthors: new InternedColumn(({ tags, author }) =>
    JSON.stringify([author ?? null, tags ?? null]),
  ),
  expiry: new SparseColumn(),
  pieces: new SparseColumn(),
  metadata: new InternedColumn(terms => terms.join('\n')),
  at: new Float64Array(0),
  hash: new Float64Array(0),
  tokens: new Uint32Array(0),
  roleAndImportance: new Uint8Array(0),
})

/**
 * The fields of memories, column by column, except id and vector. Records are numbered in the order they were added
 * and never change.
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
    const { at, hash, tokens, roleAndImportance, ...others } = this.#columns
    const { texts, speakers, tagsAndAuthors, expiry, pieces, metadata } = others
    const dense = at.byteLength + hash.byteLength + tokens.byteLength + roleAndImportance.byteLength
    const sparse = speakers.bytes + tagsAndAuthors.bytes + expiry.bytes + pieces.bytes
    return dense + texts.bytes + sparse + metadata.bytes
  }

  /** @throws RangeError when all texts together would exceed 4 GiB. */
  add(memory: Memory) {
    const columns = this.#columns
    const record = columns.texts.count
    columns.texts.add(memory.text)
    columns.at = ensureCapacity(columns.at, record + 1)
    columns.hash = ensureCapacity(columns.hash, record + 1)
    columns.tokens = ensureCapacity(columns.tokens, record + 1)
    columns.roleAndImportance = ensureCapacity(columns.roleAndImportance, record + 1)
    columns.at[record] = memory.at
    columns.hash[record] = hashText(memory.text)
    columns.tokens[record] = memory.tokens
    columns.roleAndImportance[record] =
      ((memory.importance ?? 0) << roleBits) | roles.indexOf(memory.role)
    const { tags, author } = memory
    const isShared = tags !== undefined || author !== undefined
    columns.speakers.set(record, memory.speaker)
    columns.tagsAndAuthors.set(
      record,
      isShared ? { ...(tags && { tags }), ...(author !== undefined && { author }) } : undefined,
    )
    columns.expiry.set(record, memory.expiresAt)
    columns.pieces.set(record, pieceKey(memory.piece))
    columns.metadata.set(record, memory.metadata && metadataTerms(memory.metadata))
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
    return this.#columns.speakers.get(record)
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

  /** Sets the piece of a record that was made of another one. */
  copyPiece(from: number, to: number) {
    this.#columns.pieces.set(to, this.#columns.pieces.get(from))
  }

  metadata(record: number): Metadata | undefined {
    const terms = this.#columns.metadata.get(record)
    return terms && metadataFromTerms(terms)
  }

  /** Returns whether records pass a test of their metadata. */
  metadataMatcher(test: Test): (record: number) => boolean {
    return this.#columns.metadata.matcher(termsPredicate(test))
  }

  /** Tags and author of a shared memory. */
  tagsAndAuthor(record: number): Pick<Memory, 'tags' | 'author'> {
    return this.#columns.tagsAndAuthors.get(record) ?? {}
  }

  text(record: number): string {
    return this.#columns.texts.text(record)
  }

  /** 53 bits of a hash of the text, normalised (NFC) and trimmed. */
  textHash(record: number): number {
    return this.#columns.hash[record]!
  }

  /** Returns columns of these records only, numbered from 0 in the order given. */
  pick(records: Uint32Array): MemoryColumns {
    const columns = this.#columns
    return new MemoryColumns({
      texts: columns.texts.pick(records),
      speakers: columns.speakers.pick(records),
      tagsAndAuthors: columns.tagsAndAuthors.pick(records),
      expiry: columns.expiry.pick(records),
      pieces: columns.pieces.pick(records),
      metadata: columns.metadata.pick(records),
      at: selectRows(columns.at, records),
      hash: selectRows(columns.hash, records),
      tokens: selectRows(columns.tokens, records),
      roleAndImportance: selectRows(columns.roleAndImportance, records),
    })
  }

  /** What `restore` takes. */
  save() {
    const { texts, speakers, tagsAndAuthors, expiry, pieces, metadata, ...dense } = this.#columns
    const { count } = texts
    return {
      texts: texts.save(),
      speakers: speakers.save(count),
      tagsAndAuthors: tagsAndAuthors.save(count),
      expiry: expiry.save(count),
      pieces: pieces.save(count),
      metadata: metadata.save(count),
      at: dense.at.subarray(0, count),
      hash: dense.hash.subarray(0, count),
      tokens: dense.tokens.subarray(0, count),
      roleAndImportance: dense.roleAndImportance.subarray(0, count),
    }
  }

  static restore(saved: ReturnType<MemoryColumns['save']>): MemoryColumns {
    const { texts, speakers, tagsAndAuthors, metadata } = createColumns()
    return new MemoryColumns({
      ...saved,
      texts: texts.restore(saved.texts),
      speakers: speakers.restore(saved.speakers),
      tagsAndAuthors: tagsAndAuthors.restore(saved.tagsAndAuthors),
      expiry: new SparseColumn(saved.expiry),
      pieces: new SparseColumn(saved.pieces),
      metadata: metadata.restore(saved.metadata),
    })
  }

  /** Frees unused capacity. */
  trim() {
    const columns = this.#columns
    const { count } = columns.texts
    columns.at = trimToLength(columns.at, count)
    columns.hash = trimToLength(columns.hash, count)
    columns.tokens = trimToLength(columns.tokens, count)
    columns.roleAndImportance = trimToLength(columns.roleAndImportance, count)
    columns.texts.trim()
    const { speakers, tagsAndAuthors, expiry, pieces, metadata } = columns
    for (const column of [speakers, tagsAndAuthors, expiry, pieces, metadata]) column.trim(count)
  }
}

/** A number above 0 for some of the records. Takes no memory while no record has one. */
class SparseColumn {
  /** 0 for none; may be shorter than there are records. */
  #values: Float64Array

  constructor(values: Float64Array = new Float64Array(0)) {
    this.#values = values
  }

  get bytes(): number {
    return this.#values.byteLength
  }

  set(record: number, value: number | undefined) {
    if (value === undefined) return
    this.#values = ensureCapacity(this.#values, record + 1)
    this.#values[record] = value
  }

  get(record: number): number | undefined {
    return this.#values[record] || undefined
  }

  pick(records: Uint32Array): SparseColumn {
    return new SparseColumn(this.#values.length > 0 ? selectRows(this.#values, records) : undefined)
  }

  save(count: number): Float64Array {
    return this.#values.subarray(0, count)
  }

  trim(count: number) {
    this.#values = trimToLength(this.#values, Math.min(count, this.#values.length))
  }
}

/** Pieces of a message that have different numbers: one of 64 MiB has 32,768 of 512 tokens. */
const piecesMax = 2 ** 16
/** The last nine digits of an id are a hash: two messages of a vault share them once in 69 billion pairs. */
const messageDigits = 9

/** A message, as a number, and which of its pieces, from 0. */
export type MessagePiece = { message: number; number: number }

/** Returns a number for a piece of a message; undefined for a message that is stored whole. */
const pieceKey = (piece: Memory['piece']): number | undefined =>
  piece &&
  Number.parseInt(piece.message.slice(-messageDigits), 16) * piecesMax +
    Math.min(piece.number, piecesMax - 2) +
    1

function readPieceKey(key: number): MessagePiece {
  const rest = key % piecesMax
  return { message: (key - rest) / piecesMax, number: rest - 1 }
}
