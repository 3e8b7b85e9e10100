/** The part of the platform used here, which the type libraries know of browsers alone. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  Memory: new (size: { initial: number }) => SketchKernel['memory']
  Instance: new (module: object, imports: object) => { exports: object }
}

/**
 * The inner loop over sketches as WebAssembly: JavaScript has no instruction that looks sixteen bytes
 * up at once. Sixteen rows lie side by side, so that byte `c` of each is one load; the table holds,
 * for the low and the high half of byte `c`, what each of its sixteen values adds to a sum.
 * 10,000 rows of 1,536 dimensions: 0.16 ms, where the int8 scan takes 0.45.
 */
export type SketchKernel = {
  memory: {
    readonly buffer: ArrayBuffer
    /** @throws RangeError when there is no room. */
    grow(pages: number): number
  }
  /**
   * Adds up blocks of sixteen rows, from address `at` to `end`, and writes sixteen 16-bit sums for
   * each to `out`. The table begins at address 0 and ends at `tableEnd`, 32 bytes for each column.
   * Columns come in groups of `columnsTogether`; of a group, the halves of one kind must not add up
   * to more than 255. `half` is 15: as a constant it would be made anew at every use, which takes
   * twice the time.
   */
  sums(at: number, end: number, out: number, tableEnd: number, half: 15): void
}

export const columnsTogether = 8

/** @throws RangeError when there is no address space for another memory. */
export function createSketchKernel(pages: number): SketchKernel {
  compiled ??= new WebAssembly.Module(Uint8Array.from(moduleBytes()))
  const memory = new WebAssembly.Memory({ initial: pages })
  const { exports } = new WebAssembly.Instance(compiled, { vault: { memory } })
  return { memory, ...(exports as Pick<SketchKernel, 'sums'>) }
}

let compiled: object | undefined

const i32 = 0x7f
const v128 = 0x7b
const [at, end, out, tableEnd, half, table] = [0, 1, 2, 3, 4, 5]
const [first, last, low, high, codes, mask] = [6, 7, 8, 9, 10, 11]

const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const constant = (value: number) => [0x41, ...signed(value)]
const add = [0x6a]
const below = [0x49]
const againIf = [0x0d, 0]
const ended = [0x0b]
const code = (...parts: number[][]) => parts.flat()
const loop = (...parts: number[][]) => code([0x03, 0x40], ...parts, ended)

const vector = (operation: number, ...rest: number[]) => [0xfd, ...unsigned(operation), ...rest]
const load = (offset: number) => vector(0x00, 0, ...unsigned(offset))
const store = (offset: number) => vector(0x0b, 0, ...unsigned(offset))
const zero = vector(0x0c, ...Array.from({ length: 16 }, () => 0))
const splat = vector(0x0f)
const and = vector(0x4e)
const addBytes = vector(0x6e)
const widenLow = vector(0x89)
const widenHigh = vector(0x8a)
const shiftRight = vector(0x8d)
const addWords = vector(0x8e)
/** Of indexes over 15 each machine makes what it likes; there are none. */
const lookUp = vector(0x100)

function sumsCode(): number[] {
  const columns = Array.from({ length: columnsTogether }, (_, column) => addColumn(column))
  return code(
    code(get(half), splat, set(mask)),
    loop(
      code(zero, set(first), zero, set(last), constant(0), set(table)),
      loop(
        code(zero, set(low), zero, set(high)),
        ...columns,
        widen(low),
        widen(high),
        advance(at, 16 * columnsTogether),
        advance(table, 32 * columnsTogether),
        code(get(table), get(tableEnd), below, againIf),
      ),
      code(get(out), get(first), store(0), get(out), get(last), store(16)),
      advance(out, 32),
      code(get(at), get(end), below, againIf),
    ),
    ended,
  )
}

function addColumn(column: number): number[] {
  const lowHalf = code(get(codes), get(mask), and)
  const highHalf = code(get(codes), constant(4), shiftRight, get(mask), and)
  return code(
    code(get(at), load(16 * column), set(codes)),
    code(get(table), load(32 * column), lowHalf, lookUp, get(low), addBytes, set(low)),
    code(get(table), load(32 * column + 16), highHalf, lookUp, get(high), addBytes, set(high)),
  )
}

/** Adds sixteen bytes to the sums of the first eight rows and of the last eight. */
function widen(bytes: number): number[] {
  return code(
    code(get(bytes), widenLow, get(first), addWords, set(first)),
    code(get(bytes), widenHigh, get(last), addWords, set(last)),
  )
}

const advance = (local: number, bytes: number): number[] =>
  code(get(local), constant(bytes), add, set(local))

function moduleBytes(): number[] {
  const parameters = [at, end, out, tableEnd, half].map(() => [i32])
  const locals = list([
    [1, i32],
    [mask - table, v128],
  ])
  const body = code(locals, sumsCode())
  return code(
    [0x00, ...ascii('asm'), 1, 0, 0, 0],
    section(1, [[0x60, ...list(parameters), 0]]),
    section(2, [[...named('vault'), ...named('memory'), 2, 0, 1]]),
    section(3, [[0]]),
    section(7, [[...named('sums'), 0, 0]]),
    section(10, [[...unsigned(body.length), ...body]]),
  )
}

const ascii = (text: string): number[] => [...Buffer.from(text, 'latin1')]
const named = (text: string): number[] => [...unsigned(text.length), ...ascii(text)]
const list = (items: number[][]): number[] => [...unsigned(items.length), ...items.flat()]

function section(id: number, items: number[][]): number[] {
  const content = list(items)
  return [id, ...unsigned(content.length), ...content]
}

/** Seven bits a byte, lowest first. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

/** The same with a sign; only for numbers from 0. */
function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)]
}
