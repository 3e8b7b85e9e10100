import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto'

/** A new operation, account or vault id: UUIDv7, so ids sort by time. */
export const mintId = (): string => randomUUIDv7()

/** The lowest UUIDv7 of a moment in epoch milliseconds. */
export function lowestIdAt(at: number): string {
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(Math.max(0, at), 0, 6)
  bytes[6] = 0x70
  bytes[8] = 0x80
  return formatUuid(bytes)
}

/**
 * The id of the memory at `index` of an operation: always the same, so a job that runs twice stores once.
 *
 * @param operation a UUIDv7
 * @param index 0 to 16,777,215
 */
export const memoryIdOf = (operation: string, index: number): string =>
  copyIdOf(operation, index, String(index))

/** The id of anything else that an operation creates: the same on every run, one per purpose. */
export const idForPurpose = (operation: string, purpose: string): string =>
  copyIdOf(operation, 0, purpose)

/**
 * The id of a memory that an operation copies from a source: a UUIDv7 of the operation's millisecond whose next 24
 * bits are the index, so that memories of one operation sort in their order. The last 50 bits are a hash.
 */
export function copyIdOf(operation: string, index: number, source: string): string {
  const bytes = Buffer.from(operation.replaceAll('-', ''), 'hex')
  const tail = createHash('sha256').update(bytes).update(source).digest()
  tail.copy(bytes, 9, 0, 7)
  bytes[6] = 0x70 | (index >>> 20)
  bytes[7] = (index >>> 12) & 0xff
  bytes[8] = 0x80 | ((index >>> 6) & 0x3f)
  bytes[9] = ((index & 0x3f) << 2) | (bytes[9]! & 0x03)
  return formatUuid(bytes)
}

/** Whether a text is a UUID in its usual form. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` random base62 characters, each equally likely: 32 of them carry 190 bits. */
export function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 in a byte: values above would favour some characters.
      if (byte < 248 && text.length < length) text += base62[byte % 62]
    }
  }
  return text
}

export const formatUuid = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
