import t from 'tap'
import fc from 'fast-check'
import { createSkipUnescaped } from '#api/proxy/json/unescaped-bytes.ts'

/** As the grammar of JSON says it. */
function firstEscaped(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return at
  }
  return end
}

/** Bytes at any place in the memory behind them. */
const placed = (bytes: Uint8Array, offset: number): Uint8Array => {
  const memory = new Uint8Array(offset + bytes.length + 3).fill(0x22)
  memory.set(bytes, offset)
  return memory.subarray(offset, offset + bytes.length)
}

t.test('every byte value stops the scan or does not, at every place of a long string', async t => {
  const wrong: string[] = []
  for (let offset = 0; offset < 4; offset++) {
    for (let value = 0; value < 256; value++) {
      for (let at = 30; at < 38; at++) {
        const plain = new Uint8Array(64).fill(0x61)
        plain[at] = value
        const bytes = placed(plain, offset)
        const found = createSkipUnescaped(bytes)(0, bytes.length)
        if (found !== firstEscaped(bytes, 0, 64))
          wrong.push(`${value} at ${at} of ${offset}: ${found}`)
      }
    }
  }
  t.same(wrong, [])
})

t.test('neighbours do not change what a byte does', async t => {
  const near = fc.constantFrom(0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xff, 0)
  const run = fc.oneof(
    fc.array(near, { maxLength: 6 }),
    fc.nat({ max: 80 }).map(length => Array<number>(length).fill(0x61)),
  )
  const holds = fc.property(
    fc.array(run, { maxLength: 12 }),
    fc.nat({ max: 3 }),
    fc.nat({ max: 100 }),
    fc.nat({ max: 600 }),
    (runs, offset, from, length) => {
      const bytes = placed(Uint8Array.from(runs.flat()), offset)
      const start = Math.min(from, bytes.length)
      const end = Math.min(bytes.length, start + length)
      const skip = createSkipUnescaped(bytes)
      for (let at = start; at <= end; at++) {
        const found = skip(at, end)
        if (found !== firstEscaped(bytes, at, end)) return false
      }
      return true
    },
  )
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 2_000 }))
})
