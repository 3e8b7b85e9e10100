import { ensureCapacity, trimToLength } from '#shared/search/columns/column.ts'

/** Texts as UTF-8 one behind the other, numbered in the order they were added. */
export type TextColumn = {
  readonly count: number
  readonly bytes: number
  /** @throws RangeError when all of them together would pass 4 GiB. */
  add(text: string): void
  text(number: number): string
  /** These texts alone, numbered from 0 in the order given. */
  pick(numbers: Uint32Array): TextColumn
  /** Gives back the room kept for growing. */
  trim(): void
}

const bytesMax = 0xffffffff

export function createTextColumn(): TextColumn {
  return buildTextColumn(new Uint8Array(0), new Uint32Array(0))
}

/** @param endOffsets Where each text ends; it begins where the one before ended. */
function buildTextColumn(heap: Uint8Array, endOffsets: Uint32Array): TextColumn {
  let count = endOffsets.length
  let utf8 = Buffer.from(heap.buffer)

  const startOf = (number: number) => (number === 0 ? 0 : endOffsets[number - 1]!)

  function replaceHeap(next: Uint8Array) {
    heap = next
    utf8 = Buffer.from(next.buffer)
  }

  return {
    get count() {
      return count
    },
    get bytes() {
      return heap.byteLength + endOffsets.byteLength
    },

    add(text) {
      const start = startOf(count)
      const end = start + Buffer.byteLength(text)
      if (end > bytesMax) throw new RangeError('The texts of an image pass 4 GiB')
      if (end > heap.length) replaceHeap(ensureCapacity(heap, end))
      utf8.write(text, start)
      endOffsets = ensureCapacity(endOffsets, count + 1)
      endOffsets[count++] = end
    },

    text: number => utf8.toString('utf8', startOf(number), endOffsets[number]),

    pick(numbers) {
      let length = 0
      const pickedEndOffsets = numbers.map(
        number => (length += endOffsets[number]! - startOf(number)),
      )
      const picked = new Uint8Array(length)
      for (let i = 0; i < numbers.length; i++) {
        const text = heap.subarray(startOf(numbers[i]!), endOffsets[numbers[i]!])
        picked.set(text, pickedEndOffsets[i]! - text.length)
      }
      return buildTextColumn(picked, pickedEndOffsets)
    },

    trim() {
      replaceHeap(trimToLength(heap, startOf(count)))
      endOffsets = trimToLength(endOffsets, count)
    },
  }
}
