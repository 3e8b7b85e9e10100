import { randomUUID } from 'node:crypto'
import { canonicalJsonSteps } from '#shared/core/canonical-json.ts'
import { runInSlices, type Steps } from '#shared/core/event-loop.ts'

/** From this many characters of text on a value is written as JSON in slices. */
const largeLengthMin = 256 * 1024

/**
 * A value that was written as JSON in slices. In the JSON of what contains it stands its mark, until
 * `insertJsonBytes` puts the bytes there.
 */
export class JsonBytes {
  /** One after the other; put together once, since copying 18 MB takes 10 ms. */
  readonly pieces: readonly Buffer[]
  readonly mark = `json-bytes:${randomUUID()}`

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces
  }

  toJSON(): string {
    return this.mark
  }
}

/**
 * A value as it goes into JSON: as it is, or, where its texts are long, written in slices. At once, 18 MB hold
 * the event loop for 85 ms.
 */
export const toLargeJson = async <Value extends object>(
  value: Value,
  textLength: number,
): Promise<Value | JsonBytes> =>
  textLength < largeLengthMin ? value : new JsonBytes(await runInSlices(jsonBytesSteps(value)))

function* jsonBytesSteps(value: unknown): Steps<Buffer[]> {
  const pieces: Buffer[] = []
  for (const piece of yield* canonicalJsonSteps(value)) {
    pieces.push(Buffer.from(piece))
    yield
  }
  return pieces
}

/** JSON with the bytes of these values in place of their marks: a parameter of type `json`. */
export function insertJsonBytes(json: string, values: readonly JsonBytes[]): string | Buffer {
  if (values.length === 0) return json
  const parts: Buffer[] = []
  let rest = json
  for (const { mark, pieces } of values) {
    const quoted = `"${mark}"`
    const at = rest.indexOf(quoted)
    if (at < 0) throw new Error('The marks of JSON bytes are not in the order of their values')
    parts.push(Buffer.from(rest.slice(0, at)), ...pieces)
    rest = rest.slice(at + quoted.length)
  }
  return Buffer.concat([...parts, Buffer.from(rest)])
}
