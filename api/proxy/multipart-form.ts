import { Refusal } from '#shared/core/errors.ts'

/** Longest form that is forwarded. */
export const formBytesMax = 25 * 1024 * 1024

/** A form of which the part up to the field `model` has been read. */
export type MultipartForm = {
  model: string
  /** All bytes of the form, with the given model in place of its own. Call once. */
  bytes(model?: string): AsyncGenerator<Uint8Array>
  /** How many bytes longer the form is with that model. */
  addedBytes(model: string): number
  /** Reads and drops the rest of the form, so that the connection can be reused. */
  discard(): Promise<void>
}

/** Most bytes of the head of a part, and of the value of `model`. */
const headMax = 16 * 1024

/**
 * Finds the field `model` of a multipart form while the form arrives. Bytes before the field are buffered,
 * bytes after it are streamed: a form that begins with `model` is not buffered.
 *
 * @param contentType of the request, with its boundary
 * @throws Refusal `invalid` for a form without the field, or no form; `too-large` beyond 25 MiB, also
 *   while `bytes` is read.
 */
export async function readMultipartForm(
  source: AsyncIterable<Uint8Array>,
  contentType: string,
): Promise<MultipartForm> {
  const chunks = limitBytes(source)
  const find = createModelFinder(boundaryOf(contentType))
  let buffer = Buffer.alloc(0)
  let length = 0
  for (;;) {
    const { done, value } = await chunks.next()
    if (done) throw missingModelRefusal()
    if (length + value.length > buffer.length) {
      const larger = Buffer.alloc(Math.max(64 * 1024, (length + value.length) * 2))
      buffer.copy(larger, 0, 0, length)
      buffer = larger
    }
    buffer.set(value, length)
    length += value.length
    const modelRange = find(buffer.subarray(0, length))
    if (!modelRange) continue
    const head = buffer.subarray(0, length)
    const model = head.toString('utf8', modelRange.from, modelRange.to)
    return {
      model: model.trim(),
      addedBytes: model => Buffer.byteLength(model) - (modelRange.to - modelRange.from),
      async *bytes(other) {
        if (other === undefined) yield head
        else {
          yield head.subarray(0, modelRange.from)
          yield Buffer.from(other)
          yield head.subarray(modelRange.to)
        }
        yield* chunks
      },
      discard: async () => void (await chunks.return(undefined)),
    }
  }
}

async function* limitBytes(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > formBytesMax) {
      throw new Refusal('too-large', 'The form is larger than 25 MiB')
    }
    yield chunk
  }
}

function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  const boundary = match?.[1] ?? match?.[2]
  if (boundary !== undefined) return boundary
  throw new Refusal('invalid', 'The Content-Type of a form names its boundary')
}

const missingModelRefusal = (): Refusal =>
  new Refusal(
    'invalid',
    'The form has no field model',
    'Send multipart/form-data with file and model',
  )

type ByteRange = { from: number; to: number }

/** @returns a function to call with the growing form; it scans no byte of the parts twice. */
function createModelFinder(boundary: string): (form: Buffer) => ByteRange | undefined {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  // The first delimiter follows no line break.
  let offset = -2
  let modelStart: number | undefined
  return form => {
    for (;;) {
      if (offset < 0) {
        if (form.length < delimiter.length) return undefined
        if (!form.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2)))
          throw malformedFormRefusal()
        offset = delimiter.length - 2
      }
      if (modelStart === undefined) {
        const end = form.indexOf('\r\n\r\n', offset)
        if (end < 0 && form.length - offset > headMax) throw malformedFormRefusal()
        if (form.toString('latin1', offset, offset + 2) === '--') throw missingModelRefusal()
        if (end < 0) return undefined
        const head = form.toString('latin1', offset, end)
        modelStart = /^content-disposition:.*;\s*name="?model"?\s*(?:;|$)/im.test(head)
          ? end + 4
          : -1
        offset = end + 2
      }
      const next = form.indexOf(delimiter, offset)
      if (next < 0) {
        if (modelStart > 0 && form.length - modelStart > headMax) throw missingModelRefusal()
        if (modelStart < 0) offset = Math.max(offset, form.length - delimiter.length)
        return undefined
      }
      if (modelStart > 0) return { from: modelStart, to: next }
      modelStart = undefined
      offset = next + delimiter.length
    }
  }
}

const malformedFormRefusal = (): Refusal =>
  new Refusal('invalid', 'The body is not the form its Content-Type says')
