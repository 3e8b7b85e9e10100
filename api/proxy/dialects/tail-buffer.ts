/** The last bytes of something of any length, in a fixed amount of memory. */
export type TailBuffer = {
  /** Copies them; what came too long before is forgotten. */
  push(bytes: Uint8Array): void
  /** What is left, and whether anything has been forgotten. */
  read(): { bytes: Uint8Array; isWhole: boolean }
}

/** @param size bytes that are kept at least; at most it is twice as many. */
export function createTailBuffer(size: number): TailBuffer {
  const buffer = new Uint8Array(2 * size)
  let used = 0
  let isWhole = true
  return {
    push(bytes) {
      if (used + bytes.length > buffer.length) {
        isWhole = false
        const retained = Math.min(used, Math.max(0, size - bytes.length))
        buffer.copyWithin(0, used - retained, used)
        used = retained
      }
      const last = bytes.subarray(Math.max(0, bytes.length - (buffer.length - used)))
      buffer.set(last, used)
      used += last.length
    },
    read: () => ({ bytes: buffer.subarray(0, used), isWhole }),
  }
}
