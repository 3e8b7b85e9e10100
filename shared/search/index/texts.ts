import { grown, trimmed } from '#shared/search/columns/column.ts'

/** Texts as UTF-8 one behind the other, numbered in the order they were added. */
export type Texts = {
  readonly count: number
  readonly bytes: number
  /** @throws RangeError when all of them together would pass 4 GiB. */
  add(text: string): void
  text(number: number): string
  /** These texts alone, numbered from 0 in the order given. */
  pick(numbers: Uint32Array): Texts
  /** Gives back the room kept for growing. */
  trim(): void
}

const bytesMax = 0xffffffff

export function createTexts(): Texts {
  return over(new Uint8Array(0), new Uint32Array(0))
}

/** @param ends Where each text ends; it begins where the one before ended. */
function over(heap: Uint8Array, ends: Uint32Array): Texts {
  let count = ends.length
  let utf8 = Buffer.from(heap.buffer)

  const startOf = (number: number) => (number === 0 ? 0 : ends[number - 1]!)

  function hold(next: Uint8Array) {
    heap = next
    utf8 = Buffer.from(next.buffer)
  }

  return {
    get count() {
      return count
    },
    get bytes() {
      return heap.byteLength + ends.byteLength
    },

    add(text) {
      const start = startOf(count)
      const end = start + Buffer.byteLength(text)
      if (end > bytesMax) throw new RangeError('The texts of an image pass 4 GiB')
      if (end > heap.length) hold(grown(heap, end))
      utf8.write(text, start)
      ends = grown(ends, count + 1)
      ends[count++] = end
    },

    text: number => utf8.toString('utf8', startOf(number), ends[number]),

    pick(numbers) {
      let length = 0
      const pickedEnds = numbers.map(number => (length += ends[number]! - startOf(number)))
      const picked = new Uint8Array(length)
      for (let i = 0; i < numbers.length; i++) {
        const text = heap.subarray(startOf(numbers[i]!), ends[numbers[i]!])
        picked.set(text, pickedEnds[i]! - text.length)
      }
      return over(picked, pickedEnds)
    },

    trim() {
      hold(trimmed(heap, startOf(count)))
      ends = trimmed(ends, count)
    },
  }
}
