import { createKeyTable, type KeyTable } from '#shared/search/columns/key-table.ts'

/** UUIDs as 16 bytes each, numbered in the order they were added. */
export type Ids = Pick<KeyTable, 'count' | 'bytes' | 'drop' | 'trim'> & {
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
  pick(numbers: Uint32Array): Ids
}

export function createIds(): Ids {
  return over(createKeyTable(4))
}

export function isUuid(id: string): boolean {
  return parse(id)
}

function over(table: KeyTable): Ids {
  return {
    get count() {
      return table.count
    },
    get bytes() {
      return table.bytes
    },
    find: id => (parse(id) ? table.find(words) : -1),
    add(id) {
      if (!parse(id)) throw new TypeError('A memory id is a UUID')
      return table.add(words)
    },
    id(number) {
      table.read(number, words)
      return formatted()
    },
    drop: number => table.drop(number),
    pick: numbers => over(table.pick(numbers)),
    trim: () => table.trim(),
  }
}

/** The UUID being read or written. */
const words = new Uint32Array(4)

const shape = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

function parse(id: string): boolean {
  if (!shape.test(id)) return false
  words[0] = Number.parseInt(id.slice(0, 8), 16)
  words[1] = Number.parseInt(id.slice(9, 13) + id.slice(14, 18), 16)
  words[2] = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16)
  words[3] = Number.parseInt(id.slice(28), 16)
  return true
}

const bytes = Buffer.alloc(16)

function formatted(): string {
  for (let i = 0; i < words.length; i++) bytes.writeUInt32BE(words[i]!, 4 * i)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
