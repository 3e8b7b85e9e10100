import { createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { createInflateRaw } from 'node:zlib'
import { Refusal } from '#shared/core/errors.ts'

/** A file in a zip archive. */
type ZipEntry = { name: string; open(): AsyncIterable<Uint8Array> }

const endSignature = 0x06054b50
const end64Signature = 0x06064b50
const locator64Signature = 0x07064b50
const entrySignature = 0x02014b50
const localSignature = 0x04034b50

/** The end record is followed by a comment of at most 64 KiB. */
const tailBytesMax = 22 + 0xffff
const directoryBytesMax = 256 * 1024 * 1024

/**
 * The files of a zip archive, also of one over 4 GiB (ZIP64), stored or deflated. Their bytes are read when
 * they are asked for, as a stream.
 *
 * @throws Refusal `invalid` for a damaged archive.
 */
export async function readZip(path: string): Promise<ZipEntry[]> {
  const file = await open(path)
  try {
    const directory = await readDirectory(file, path)
    return [...entriesOf(directory, path)]
  } finally {
    await file.close()
  }
}

/** Whether a file begins like a zip archive. */
export async function isZip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const signature = bytesRead === 4 ? buffer.readUInt32LE() : 0
    return signature === localSignature || signature === endSignature
  } finally {
    await file.close()
  }
}

const damaged = (path: string, why: string): Refusal =>
  new Refusal('invalid', `${path} is a damaged zip archive: ${why}`, 'Download the export again')

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
  return buffer.subarray(0, bytesRead)
}

async function readFrom(path: string, at: number, length: number): Promise<Buffer> {
  const file = await open(path)
  try {
    return await readAt(file, at, length)
  } finally {
    await file.close()
  }
}

async function readDirectory(file: FileHandle, path: string): Promise<Buffer> {
  const { size } = await file.stat()
  const tailAt = Math.max(0, size - tailBytesMax)
  const tail = await readAt(file, tailAt, size - tailAt)
  const signature = Buffer.alloc(4)
  signature.writeUInt32LE(endSignature)
  const end = tail.lastIndexOf(signature)
  if (end === -1 || end + 22 > tail.length) throw damaged(path, 'its list of files is missing')
  let [length, at] = [tail.readUInt32LE(end + 12), tail.readUInt32LE(end + 16)]
  if (end >= 20 && tail.readUInt32LE(end - 20) === locator64Signature) {
    const end64 = await readAt(file, Number(tail.readBigUInt64LE(end - 12)), 56)
    if (end64.length < 56 || end64.readUInt32LE(0) !== end64Signature)
      throw damaged(path, 'its list of files is missing')
    length = Number(end64.readBigUInt64LE(40))
    at = Number(end64.readBigUInt64LE(48))
  }
  if (length > directoryBytesMax || at + length > size) throw damaged(path, 'it is cut off')
  return readAt(file, at, length)
}

function* entriesOf(directory: Buffer, path: string): Generator<ZipEntry> {
  for (let at = 0; at + 46 <= directory.length;) {
    if (directory.readUInt32LE(at) !== entrySignature) throw damaged(path, 'in its list of files')
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map(offset =>
      directory.readUInt16LE(at + offset),
    ) as [number, number, number]
    const nameEnd = at + 46 + nameLength
    const name = directory.toString('utf8', at + 46, nameEnd)
    const extra = directory.subarray(nameEnd, nameEnd + extraLength)
    const place = {
      flags: directory.readUInt16LE(at + 8),
      method: directory.readUInt16LE(at + 10),
      ...readPlace(directory, at, extra),
    }
    if (!name.endsWith('/')) yield { name, open: () => readEntry(path, name, place) }
    at = nameEnd + extraLength + commentLength
  }
}

type Place = { length: number; at: number }

/** Length and offset of an entry; where they do not fit 32 bits they stand in its extra field 1. */
function readPlace(directory: Buffer, entry: number, extra: Buffer): Place {
  const [length, fullLength, at] = [20, 24, 42].map(offset =>
    directory.readUInt32LE(entry + offset),
  ) as [number, number, number]
  let next = -1
  for (let field = 0; field + 4 <= extra.length; field += 4 + extra.readUInt16LE(field + 2))
    if (extra.readUInt16LE(field) === 1) next = field + 4
  const wide = (value: number): number => {
    if (value !== 0xffffffff || next === -1 || next + 8 > extra.length) return value
    const found = Number(extra.readBigUInt64LE(next))
    next += 8
    return found
  }
  wide(fullLength)
  return { length: wide(length), at: wide(at) }
}

async function* readEntry(
  path: string,
  name: string,
  { flags, method, length, at }: Place & { flags: number; method: number },
): AsyncGenerator<Uint8Array> {
  if ((flags & 1) !== 0) throw new Refusal('invalid', `${name} in ${path} has a password`)
  if (method !== 0 && method !== 8) {
    throw new Refusal('invalid', `${name} in ${path} is compressed in another way`, 'Unpack it')
  }
  const local = await readFrom(path, at, 30)
  if (local.length < 30 || local.readUInt32LE(0) !== localSignature)
    throw damaged(path, `${name} is not where it should be`)
  const start = at + 30 + local.readUInt16LE(26) + local.readUInt16LE(28)
  if (length === 0) return
  const bytes = createReadStream(path, { start, end: start + length - 1 })
  if (method === 0) {
    yield* bytes as AsyncIterable<Uint8Array>
    return
  }
  const inflate = createInflateRaw()
  bytes.on('error', error => inflate.destroy(error))
  try {
    yield* bytes.pipe(inflate) as AsyncIterable<Uint8Array>
  } catch (error) {
    throw damaged(path, `${name}: ${(error as Error).message}`)
  } finally {
    bytes.destroy()
  }
}
