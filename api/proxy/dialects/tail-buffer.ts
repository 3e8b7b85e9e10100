/** Keeps the last bytes of a stream of any length, in a fixed amount of memory. */
export type TailBuffer = {
  /** Copies the bytes; older bytes beyond the size are dropped. */
  push(bytes: Uint8Array): void
  /** The bytes still held; `isComplete` when none were dropped. */
  read(): { bytes: Uint8Array; isComplete: boolean }
}

/** @param size bytes that are held at least; at most twice as many */
export function createTailBuffer(size: number): TailBuffer {
  const buffer = new Uint8Array(2 * size)
  let used = 0
  let isComplete = true
  return {
    push(bytes) {
      if (used + bytes.length > buffer.length) {
        isComplete = false
        const retained = Math.min(used, Math.max(0, size - bytes.length))
        buffer.copyWithin(0, used - retained, used)
        used = retained
      }
      const last = bytes.subarray(Math.max(0, bytes.length - (buffer.length - used)))
      buffer.set(last, used)
      used += last.length
    },
    read: () => ({ bytes: buffer.subarray(0, used), isComplete }),
  }
}
