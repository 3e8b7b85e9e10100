import type { BodyShare } from '#api/edge/body-budget.ts'
import { createStreamedBody, type StreamedBody } from '#api/proxy/streamed-body.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'

/** Most bytes before the field `model`, which are buffered. */
const bufferedBytesMax = 25 * 1024 * 1024

/** Most bytes of the head of a part, and of the value of `model`. */
const headMax = 16 * 1024

/**
 * Finds the field `model` of a multipart form while the form arrives. Bytes before the field are buffered,
 * bytes after it are streamed: a form that begins with `model` is not buffered.
 *
 * @param contentType of the request, with its boundary
 * @throws Refusal `invalid` for a form without the field, or no form; `too-large` when more than 25 MiB
 *   precede it; what the source throws, also while it is sent
 */
export async function readMultipartForm(
  chunks: AsyncGenerator<Uint8Array>,
  contentType: string,
  options: {
    /** Whether the form may do without the field. */
    isOptional?: boolean
    /** A share of the memory for bodies; it counts what is buffered. */
    share?: Pick<BodyShare, 'hold' | 'release'>
    /** The length of the form, where it is known. */
    byteLength?: number | undefined
  } = {},
): Promise<StreamedBody> {
  const { isOptional = false, share, byteLength } = options
  try {
    const find = createModelFinder(boundaryOf(contentType))
    const { head, range } = await readUpToModel(chunks, find, share?.hold)
    if (!range && !isOptional)
      throw head.length > bufferedBytesMax
        ? refusal('too-large', 'formTooLong')
        : refusal('invalid', 'formWithoutModel')
    const name = range && head.toString('utf8', range.at, range.end).trim()
    const model = range && { name: name!, ...range }
    return createStreamedBody({ head, model, write: text => text, chunks, byteLength, share })
  } catch (error) {
    // Unread bytes would hold up the connection.
    await chunks.return(undefined)
    throw error
  }
}

/** @returns the bytes up to the end of the model, or without `range` those in which none was found. */
async function readUpToModel(
  chunks: AsyncGenerator<Uint8Array>,
  find: ReturnType<typeof createModelFinder>,
  hold: BodyShare['hold'] = () => {},
): Promise<{ head: Buffer; range?: ByteRange }> {
  let buffer = Buffer.alloc(0)
  let length = 0
  for (;;) {
    const { done, value } = await chunks.next()
    if (done || length > bufferedBytesMax) {
      const last = done ? Buffer.alloc(0) : value
      return { head: Buffer.concat([buffer.subarray(0, length), last]) }
    }
    if (length + value.length > buffer.length) {
      const larger = Buffer.alloc(Math.max(64 * 1024, (length + value.length) * 2))
      buffer.copy(larger, 0, 0, length)
      buffer = larger
      hold(buffer.length)
    }
    buffer.set(value, length)
    length += value.length
    const head = buffer.subarray(0, length)
    const range = find(head)
    if (range) return range === 'none' ? { head } : { head, range }
  }
}

function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  const boundary = match?.[1] ?? match?.[2]
  if (boundary !== undefined) return boundary
  throw new Refusal('invalid', 'The Content-Type of a form names its boundary')
}

type ByteRange = { at: number; end: number }

/**
 * @returns a function to call with the growing form, which scans no byte of the parts twice; it returns
 *   `none` at the end of a form without the field.
 */
function createModelFinder(boundary: string): (form: Buffer) => ByteRange | 'none' | undefined {
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
        if (form.toString('latin1', offset, offset + 2) === '--') return 'none'
        if (end < 0) return undefined
        const head = form.toString('latin1', offset, end)
        modelStart = /^content-disposition:.*;\s*name="?model"?\s*(?:;|$)/im.test(head)
          ? end + 4
          : -1
        offset = end + 2
      }
      const next = form.indexOf(delimiter, offset)
      if (next < 0) {
        if (modelStart > 0 && form.length - modelStart > headMax)
          throw refusal('invalid', 'formWithoutModel')
        if (modelStart < 0) offset = Math.max(offset, form.length - delimiter.length)
        return undefined
      }
      if (modelStart > 0) return { at: modelStart, end: next }
      modelStart = undefined
      offset = next + delimiter.length
    }
  }
}

const malformedFormRefusal = (): Refusal =>
  new Refusal('invalid', 'The body is not the form its Content-Type says')
