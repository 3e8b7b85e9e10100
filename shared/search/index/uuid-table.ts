import { createKeyTable, type KeyTable } from '#shared/search/columns/key-table.ts'

/** UUIDs as 16 bytes each, numbered in the order they were added. */
export type UuidTable = Pick<KeyTable, 'count' | 'bytes' | 'drop' | 'trim'> & {
  /** The number of an id, or -1, also for what is no UUID. */
  find(id: string): number
  /**
   * Adds an id that is not there yet, and returns its number.
   *
   * @throws TypeError when it is no UUID.
   */
  add(id: string): number
  /** The id of a number, in lower case. */
  id(number: number): string
  pick(numbers: Uint32Array): UuidTable
}

export function createUuidTable(): UuidTable {
  return wrapKeyTable(createKeyTable(4))
}

export function isLowerCaseUuid(id: string): boolean {
  return parseUuid(id)
}

function wrapKeyTable(table: KeyTable): UuidTable {
  return {
    get count() {
      return table.count
    },
    get bytes() {
      return table.bytes
    },
    find: id => (parseUuid(id) ? table.find(uuidWords) : -1),
    add(id) {
      if (!parseUuid(id)) throw new TypeError('A memory id is a UUID')
      return table.add(uuidWords)
    },
    id(number) {
      table.copyKey(number, uuidWords)
      return formatUuid()
    },
    drop: number => table.drop(number),
    pick: numbers => wrapKeyTable(table.pick(numbers)),
    trim: () => table.trim(),
  }
}

/** The UUID being read or written. */
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
