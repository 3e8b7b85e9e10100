/** Bytes of the record at the end of an archive, and of the longest comment behind it. */
const [endBytes, commentBytesMax] = [22, 65_535]
const wideEndBytes = 20
const headBytes = 30

/** A file within an archive. */
export type ArchivedFile = {
  name: string
  /** As its archive says; one that has more or less is refused while it is read. */
  bytes: number
  packedBytes: number
  /** Milliseconds since 1970. The archive has the time of a clock and not its zone: it is taken for UTC. */
  modified: number
  open(): AsyncIterable<Uint8Array>
}

type Entry = { packedBytes: number; bytes: number; offset: number; method: number; flags: number }

/** Whether a file begins like a zip archive, which may be empty. */
export async function isZip(file: Blob): Promise<boolean> {
  const view = await viewOf(file, 0, 4)
  return view.byteLength === 4 && [0x04034b50, 0x06054b50].includes(view.getUint32(0, true))
}

/**
 * Lists the files of a zip archive (PKWARE's APPNOTE 6.3.10, with its wide fields) without reading them. Names are
 * UTF-8, also where their flag is missing, as macOS does. It runs in browsers too, which is why no package does it.
 *
 * @throws Error for a damaged archive; `open` for a damaged or encrypted file
 */
export async function readZip(archive: Blob): Promise<ArchivedFile[]> {
  const directory = await findDirectory(archive)
  const { offset } = directory
  const view = await viewOf(archive, offset, offset + directory.bytes)
  const decoder = new TextDecoder()
  const files: ArchivedFile[] = []
  for (let at = 0; at < directory.bytes;) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== 0x02014b50)
      throw new Error('its list of files is damaged')
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map(field =>
      view.getUint16(at + field, true),
    ) as [number, number, number]
    const extraAt = at + 46 + nameBytes
    const end = extraAt + extraBytes + commentBytes
    if (end > view.byteLength) throw new Error('its list of files is cut off')
    const name = decoder.decode(new Uint8Array(view.buffer, at + 46, nameBytes))
    const entry = readEntry(view, at, { from: extraAt, to: extraAt + extraBytes })
    const { bytes, packedBytes } = entry
    if (!name.endsWith('/'))
      files.push({
        name,
        bytes,
        packedBytes,
        modified: readTime(view.getUint16(at + 14, true), view.getUint16(at + 12, true)),
        open: () => openEntry(archive, entry),
      })
    at = end
  }
  return files
}

/** A time of MS-DOS: years since 1980, months, days; hours, minutes, pairs of seconds. */
const readTime = (date: number, time: number): number =>
  Date.UTC(
    1980 + (date >> 9),
    ((date >> 5) & 15) - 1,
    date & 31,
    time >> 11,
    (time >> 5) & 63,
    (time & 31) * 2,
  )

/** Finds the list of files by the record at the end, which may have a wide one before it. */
async function findDirectory(archive: Blob): Promise<{ offset: number; bytes: number }> {
  const from = Math.max(0, archive.size - endBytes - commentBytesMax - wideEndBytes)
  const view = await viewOf(archive, from, archive.size)
  for (let at = view.byteLength - endBytes; at >= 0; at--) {
    if (view.getUint32(at, true) !== 0x06054b50) continue
    if (at + endBytes + view.getUint16(at + 20, true) !== view.byteLength) continue
    const wideAt = at - wideEndBytes
    if (wideAt >= 0 && view.getUint32(wideAt, true) === 0x07064b50) {
      const start = wideNumber(view, wideAt + 8)
      const wide = await viewOf(archive, start, start + 56)
      if (wide.byteLength < 56 || wide.getUint32(0, true) !== 0x06064b50)
        throw new Error('its wide end of central directory is missing')
      return { bytes: wideNumber(wide, 40), offset: wideNumber(wide, 48) }
    }
    return { bytes: view.getUint32(at + 12, true), offset: view.getUint32(at + 16, true) }
  }
  throw new Error('End of central directory not found: it is cut off, or no zip archive')
}

/** Reads where a file lies; numbers that do not fit stand in an extra field. */
function readEntry(view: DataView, at: number, extra: { from: number; to: number }): Entry {
  let wideAt = 0
  for (let field = extra.from; field + 4 <= extra.to;) {
    if (view.getUint16(field, true) === 1) wideAt = field + 4
    field += 4 + view.getUint16(field + 2, true)
  }
  const number = (field: number): number => {
    const narrow = view.getUint32(at + field, true)
    if (narrow !== 0xffffffff || wideAt === 0 || wideAt + 8 > extra.to) return narrow
    wideAt += 8
    return wideNumber(view, wideAt - 8)
  }
  const bytes = number(24)
  const packedBytes = number(20)
  const offset = number(42)
  const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)]
  return { packedBytes, bytes, offset, method, flags }
}

/** Yields what a file holds. */
async function* openEntry(
  archive: Blob,
  { packedBytes, bytes, offset, method, flags }: Entry,
): AsyncGenerator<Uint8Array> {
  if (flags & 1) throw new Error('it is encrypted')
  if (method !== 0 && method !== 8) throw new Error(`it is packed by method ${method}`)
  const head = await viewOf(archive, offset, offset + headBytes)
  if (head.byteLength < headBytes || head.getUint32(0, true) !== 0x04034b50)
    throw new Error('its head is damaged')
  const start = offset + headBytes + head.getUint16(26, true) + head.getUint16(28, true)
  const packed = archive.slice(start, start + packedBytes).stream()
  const unpacked =
    method === 0 ? packed : packed.pipeThrough(new DecompressionStream('deflate-raw'))
  let read = 0
  for await (const chunk of chunksOf(unpacked)) {
    read += chunk.length
    if (read > bytes) break
    yield chunk
  }
  if (read !== bytes) throw new Error('it has another length than its archive says')
}

const viewOf = async (file: Blob, from: number, to: number): Promise<DataView> =>
  new DataView(await file.slice(from, to).arrayBuffer())

const wideNumber = (view: DataView, at: number): number => Number(view.getBigUint64(at, true))

/** Yields the chunks of a stream; not all browsers iterate over streams themselves. */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
