import { Refusal } from '#shared/core/errors.ts'

/** Longest form that is forwarded. */
export const formBytesMax = 25 * 1024 * 1024

/** A form on its way: what was read to find the model, with the model's place in it, and the rest. */
export type Form = {
  model: string
  /** All bytes of the form, with another model in its place where one is given; read once. */
  bytes(model?: string): AsyncGenerator<Uint8Array>
  /** How many bytes longer the form gets by that. */
  growth(model: string): number
  /** Reads and drops what nobody has asked for, so that the connection can be used again. */
  drop(): Promise<void>
}

/** The parts before it may be large, its own head and value not. */
const headMax = 16 * 1024

/**
 * Finds the field `model` of a multipart form while the form arrives. What comes before it is held, what
 * comes after it is not read: a client that names the model first streams its recording through.
 *
 * @param contentType as the request says it, with its boundary
 * @throws Refusal `invalid` for a form without the field, or that is none; `too-large` beyond 25 MiB, at
 *   whatever time that shows.
 */
export async function formIn(
  source: AsyncIterable<Uint8Array>,
  contentType: string,
): Promise<Form> {
  const chunks = limited(source)
  const find = modelFinder(boundaryOf(contentType))
  let held = Buffer.alloc(0)
  let length = 0
  for (;;) {
    const { done, value } = await chunks.next()
    if (done) throw noModel()
    if (length + value.length > held.length) {
      const larger = Buffer.alloc(Math.max(64 * 1024, (length + value.length) * 2))
      held.copy(larger, 0, 0, length)
      held = larger
    }
    held.set(value, length)
    length += value.length
    const place = find(held.subarray(0, length))
    if (!place) continue
    const head = held.subarray(0, length)
    const model = head.toString('utf8', place.from, place.to)
    return {
      model: model.trim(),
      growth: other => Buffer.byteLength(other) - (place.to - place.from),
      async *bytes(other) {
        if (other === undefined) yield head
        else {
          yield head.subarray(0, place.from)
          yield Buffer.from(other)
          yield head.subarray(place.to)
        }
        yield* chunks
      },
      drop: async () => void (await chunks.return(undefined)),
    }
  }
}

async function* limited(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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

const noModel = (): Refusal =>
  new Refusal(
    'invalid',
    'The form has no field model',
    'Send multipart/form-data with file and model',
  )

type Place = { from: number; to: number }

/** Looks at a form that grows from call to call, and at no byte of its parts twice. */
function modelFinder(boundary: string): (form: Buffer) => Place | undefined {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  // The first delimiter has no line before it.
  let at = -2
  let inModel: number | undefined
  return form => {
    for (;;) {
      if (at < 0) {
        if (form.length < delimiter.length) return undefined
        if (!form.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2))) throw noForm()
        at = delimiter.length - 2
      }
      if (inModel === undefined) {
        const end = form.indexOf('\r\n\r\n', at)
        if (end < 0 && form.length - at > headMax) throw noForm()
        if (form.toString('latin1', at, at + 2) === '--') throw noModel()
        if (end < 0) return undefined
        const head = form.toString('latin1', at, end)
        inModel = /^content-disposition:.*;\s*name="?model"?\s*(?:;|$)/im.test(head) ? end + 4 : -1
        at = end + 2
      }
      const next = form.indexOf(delimiter, at)
      if (next < 0) {
        if (inModel > 0 && form.length - inModel > headMax) throw noModel()
        if (inModel < 0) at = Math.max(at, form.length - delimiter.length)
        return undefined
      }
      if (inModel > 0) return { from: inModel, to: next }
      inModel = undefined
      at = next + delimiter.length
    }
  }
}

const noForm = (): Refusal =>
  new Refusal('invalid', 'The body is not the form its Content-Type says')
