/** The part of WebAssembly that is used here; only the type library for browsers declares it. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  Memory: new (size: { initial: number }) => PrefilterKernel['memory']
  Instance: new (module: object, imports: object) => { exports: object }
}

/**
 * The inner loop of the prefilter as WebAssembly: JavaScript has no instruction that looks up sixteen bytes at once
 * (`i8x16.swizzle`). Rows are interleaved by sixteen, so that byte `c` of each is one load; the table has the contribution
 * of each value of the low and the high half of byte `c`. 10,000 rows of 1,536 dimensions: 0.16 ms, an int8 scan 0.45.
 */
export type PrefilterKernel = {
  memory: {
    readonly buffer: ArrayBuffer
    /** @throws RangeError when memory cannot be allocated. */
    grow(pages: number): number
  }
  /**
   * Sums the contributions of groups of sixteen rows, from address `at` to `end`, and writes sixteen 16-bit sums for each to
   * `out`. The table is at addresses 0 to `tableEnd`, 32 bytes per column. The contributions of the low halves of
   * `columnsPerGroup` columns, and those of the high halves, must not exceed 255 in total. `half` is 15; a constant would
   * double the time.
   */
  sums(at: number, end: number, out: number, tableEnd: number, half: 15): void
}

export const columnsPerGroup = 8

/** @throws RangeError when there is no address space for another memory. */
export function createPrefilterKernel(pages: number): PrefilterKernel {
  compiledModule ??= new WebAssembly.Module(Uint8Array.from(moduleBytes()))
  const memory = new WebAssembly.Memory({ initial: pages })
  const { exports } = new WebAssembly.Instance(compiledModule, { vault: { memory } })
  return { memory, ...(exports as Pick<PrefilterKernel, 'sums'>) }
}

let compiledModule: object | undefined

const i32 = 0x7f
const v128 = 0x7b
const [at, end, out, tableEnd, half, table] = [0, 1, 2, 3, 4, 5]
const [first, last, low, high, codes, mask] = [6, 7, 8, 9, 10, 11]

const localGet = (local: number) => [0x20, local]
const localSet = (local: number) => [0x21, local]
const i32Const = (value: number) => [0x41, ...signedLeb128(value)]
const i32Add = [0x6a]
const i32LessThan = [0x49]
const branchIf = [0x0d, 0]
const endOpcode = [0x0b]
const concatCode = (...parts: number[][]) => parts.flat()
const loop = (...parts: number[][]) => concatCode([0x03, 0x40], ...parts, endOpcode)

const simd = (operation: number, ...rest: number[]) => [0xfd, ...unsignedLeb128(operation), ...rest]
const v128Load = (offset: number) => simd(0x00, 0, ...unsignedLeb128(offset))
const v128Store = (offset: number) => simd(0x0b, 0, ...unsignedLeb128(offset))
const v128Zero = simd(0x0c, ...Array.from({ length: 16 }, () => 0))
const i8x16Splat = simd(0x0f)
const v128And = simd(0x4e)
const i8x16Add = simd(0x6e)
const i16x8ExtendLow = simd(0x89)
const i16x8ExtendHigh = simd(0x8a)
const i16x8ShiftRight = simd(0x8d)
const i16x8Add = simd(0x8e)
/** Relaxed swizzle, undefined for indexes over 15, which do not occur. */
const i8x16Swizzle = simd(0x100)

function sumsFunctionCode(): number[] {
  const columns = Array.from({ length: columnsPerGroup }, (_, column) => addColumn(column))
  return concatCode(
    concatCode(localGet(half), i8x16Splat, localSet(mask)),
    loop(
      concatCode(v128Zero, localSet(first), v128Zero, localSet(last), i32Const(0), localSet(table)),
      loop(
        concatCode(v128Zero, localSet(low), v128Zero, localSet(high)),
        ...columns,
        addToSums(low),
        addToSums(high),
        advanceLocal(at, 16 * columnsPerGroup),
        advanceLocal(table, 32 * columnsPerGroup),
        concatCode(localGet(table), localGet(tableEnd), i32LessThan, branchIf),
      ),
      concatCode(
        localGet(out),
        localGet(first),
        v128Store(0),
        localGet(out),
        localGet(last),
        v128Store(16),
      ),
      advanceLocal(out, 32),
      concatCode(localGet(at), localGet(end), i32LessThan, branchIf),
    ),
    endOpcode,
  )
}

function addColumn(column: number): number[] {
  const lowHalf = concatCode(localGet(codes), localGet(mask), v128And)
  const highHalf = concatCode(
    localGet(codes),
    i32Const(4),
    i16x8ShiftRight,
    localGet(mask),
    v128And,
  )
  return concatCode(
    concatCode(localGet(at), v128Load(16 * column), localSet(codes)),
    concatCode(
      localGet(table),
      v128Load(32 * column),
      lowHalf,
      i8x16Swizzle,
      localGet(low),
      i8x16Add,
      localSet(low),
    ),
    concatCode(
      localGet(table),
      v128Load(32 * column + 16),
      highHalf,
      i8x16Swizzle,
      localGet(high),
      i8x16Add,
      localSet(high),
    ),
  )
}

/** Adds sixteen bytes to the sums of the first eight rows and of the last eight. */
function addToSums(bytes: number): number[] {
  return concatCode(
    concatCode(localGet(bytes), i16x8ExtendLow, localGet(first), i16x8Add, localSet(first)),
    concatCode(localGet(bytes), i16x8ExtendHigh, localGet(last), i16x8Add, localSet(last)),
  )
}

const advanceLocal = (local: number, bytes: number): number[] =>
  concatCode(localGet(local), i32Const(bytes), i32Add, localSet(local))

function moduleBytes(): number[] {
  const parameters = [at, end, out, tableEnd, half].map(() => [i32])
  const locals = encodeList([
    [1, i32],
    [mask - table, v128],
  ])
  const body = concatCode(locals, sumsFunctionCode())
  return concatCode(
    [0x00, ...ascii('asm'), 1, 0, 0, 0],
    encodeSection(1, [[0x60, ...encodeList(parameters), 0]]),
    encodeSection(2, [[...encodeName('vault'), ...encodeName('memory'), 2, 0, 1]]),
    encodeSection(3, [[0]]),
    encodeSection(7, [[...encodeName('sums'), 0, 0]]),
    encodeSection(10, [[...unsignedLeb128(body.length), ...body]]),
  )
}

const ascii = (text: string): number[] => [...Buffer.from(text, 'latin1')]
const encodeName = (text: string): number[] => [...unsignedLeb128(text.length), ...ascii(text)]
const encodeList = (items: number[][]): number[] => [
  ...unsignedLeb128(items.length),
  ...items.flat(),
]

function encodeSection(id: number, items: number[][]): number[] {
  const content = encodeList(items)
  return [id, ...unsignedLeb128(content.length), ...content]
}

/** Variable-length encoding of WebAssembly: seven bits a byte, lowest first. */
function unsignedLeb128(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsignedLeb128(value >>> 7)]
}

/** The same with a sign bit; only for numbers from 0. */
function signedLeb128(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signedLeb128(value >>> 7)]
}
