/** The raw bytes of one JSON string or word while they arrive; reused for the next. */
export type Scratch = {
  /** Forgets what was there and takes up to `max` bytes. */
  begin(max: number): void
  add(bytes: Uint8Array, start: number, end: number): void
  /** Bytes held. */
  length(): number
  /** Whether more came than was taken. */
  isCut(): boolean
  /** What the bytes spell between quotes; up to where they were cut. */
  string(): string
  /** The number, boolean or null they spell; undefined when none. */
  word(): unknown
}

/** A text this long is given back to memory after it was read. */
const keptBytes = 64 * 1024

export function createScratch(): Scratch {
  let held = Buffer.allocUnsafe(256)
  let length = 0
  let max = 0
  let cut = false
  return {
    begin(bytesMax) {
      if (held.length > keptBytes) held = Buffer.allocUnsafe(256)
      length = 0
      max = bytesMax
      cut = false
    },
    add(bytes, start, end) {
      const taken = Math.min(end - start, max - length)
      if (taken < end - start) cut = true
      if (taken <= 0) return
      if (length + taken > held.length) {
        const larger = Buffer.allocUnsafe(Math.max(2 * held.length, length + taken))
        held.copy(larger, 0, 0, length)
        held = larger
      }
      held.set(bytes.subarray(start, start + taken), length)
      length += taken
    },
    length: () => length,
    isCut: () => cut,
    string() {
      const raw = held.toString('utf8', 0, length)
      return unescaped(cut ? raw.replace(/\uFFFD$/, '') : raw)
    },
    word() {
      try {
        return JSON.parse(held.toString('latin1', 0, length)) as unknown
      } catch {
        return undefined
      }
    },
  }
}

/** As long as the longest escape, which a cut may have left unfinished. */
const escapeMax = 6

function unescaped(raw: string): string {
  if (!raw.includes('\\')) return raw
  for (let unfinished = 0; unfinished < escapeMax; unfinished++) {
    try {
      return JSON.parse(`"${raw.slice(0, raw.length - unfinished)}"`) as string
    } catch {
      continue
    }
  }
  return raw
}
