/** A typed array within the JSON of packed values: its kind, and its bytes behind the JSON. */
type PackedArray = { $array: keyof typeof kinds; at: number; bytes: number }

const kinds = { Int8Array, Uint8Array, Uint16Array, Uint32Array, Float32Array, Float64Array }

const headBytes = 4

/** Packs a JSON value that may hold typed arrays. Readable on machines of the same byte order alone. */
export function packArrays(value: unknown): Buffer {
  const arrays: ArrayBufferView[] = []
  let at = 0
  const json = Buffer.from(
    JSON.stringify(value, (_, field: unknown) => {
      if (!ArrayBuffer.isView(field)) return field
      arrays.push(field)
      at += field.byteLength
      const kind = field.constructor.name as PackedArray['$array']
      return { $array: kind, at: at - field.byteLength, bytes: field.byteLength }
    }),
  )
  const packed = Buffer.allocUnsafe(headBytes + json.length + at)
  packed.writeUInt32LE(json.length)
  json.copy(packed, headBytes)
  let end = headBytes + json.length
  for (const { buffer, byteOffset, byteLength } of arrays) {
    packed.set(new Uint8Array(buffer, byteOffset, byteLength), end)
    end += byteLength
  }
  return packed
}

/** The value again; its arrays are copies with buffers of their own. */
export function unpackArrays(packed: Buffer): unknown {
  const start = headBytes + packed.readUInt32LE()
  return JSON.parse(packed.toString('utf8', headBytes, start), (_, field: unknown) => {
    if (typeof field !== 'object' || field === null || !('$array' in field)) return field
    const { $array, at, bytes } = field as PackedArray
    const { buffer } = new Uint8Array(packed.subarray(start + at, start + at + bytes))
    return new kinds[$array](buffer)
  })
}
