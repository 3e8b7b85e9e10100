/** Heap and external bytes, measured until stable: buffers are freed some time after a collection. */
export async function measureUsedBytes(): Promise<number> {
  let used = 0
  for (let same = 0, rounds = 0; same < 3 && rounds < 100; rounds++) {
    gc?.()
    await new Promise(resolve => setTimeout(resolve, 5))
    // `external` includes array buffers and the memory of WebAssembly; `arrayBuffers` lacks the latter.
    const { heapUsed, external } = process.memoryUsage()
    same = Math.abs(heapUsed + external - used) < 20_000 ? same + 1 : 0
    used = heapUsed + external
  }
  return used
}
