import { KeyTable } from '#shared/search/columns/key-table.ts'

/** UUIDs as 16 bytes each, numbered in the order they were added. */
export class UuidTable {
  readonly #table: KeyTable

  constructor(table = new KeyTable(4)) {
    this.#table = table
  }

  /** UUIDs ever added; the next one gets this number. */
  get count(): number {
    return this.#table.count
  }

  get bytes(): number {
    return this.#table.bytes
  }

  /** Returns the number of an id, or -1 when it is unknown or not a lower-case UUID. */
  find(id: string): number {
    return parseUuid(id) ? this.#table.find(uuidWords) : -1
  }

  /**
   * Adds an id that is not in the table, and returns its number.
   *
   * @throws TypeError when it is not a lower-case UUID.
   */
  add(id: string): number {
    if (!parseUuid(id)) throw new TypeError('A memory id is a UUID')
    return this.#table.add(uuidWords)
  }

  /** Returns the id of a number, in lower case. */
  id(number: number): string {
    this.#table.copyKey(number, uuidWords)
    return formatUuid()
  }

  /** Hides a number from `find`; `id` still returns its id. */
  drop(number: number) {
    this.#table.drop(number)
  }

  /** Returns a table of these ids only, numbered from 0 in the order given. */
  pick(numbers: Uint32Array): UuidTable {
    return new UuidTable(this.#table.pick(numbers))
  }

  /** What the constructor takes, restored. */
  save() {
    return this.#table.save()
  }

  /** Frees unused capacity. */
  trim() {
    this.#table.trim()
  }
}

export const isLowerCaseUuid = (id: string): boolean => parseUuid(id)

/** Scratch for the UUID that is parsed or formatted. */
const uuidWords = new Uint32Array(4)

const uuidPattern = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

function parseUuid(id: string): boolean {
  if (!uuidPattern.test(id)) return false
  uuidWords[0] = Number.parseInt(id.slice(0, 8), 16)
  uuidWords[1] = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16)
  uuidWords[2] = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16)
  uuidWords[3] = Number.parseInt(id.slice(28), 16)
  return true
}

const uuidBytes = Buffer.alloc(16)

function formatUuid(): string {
  for (let i = 0; i < uuidWords.length; i++) uuidBytes.writeUInt32BE(uuidWords[i]!, 4 * i)
  const hex = uuidBytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
