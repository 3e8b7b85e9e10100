import { randomUUID, type Hash } from 'node:crypto'
import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'

/** Characters of one step: less than a millisecond. */
const stepLength = 64 * 1024

/** Bytes of one step of hashing: about a millisecond. */
const stepBytes = 512 * 1024

/** The JSON of a value with the fields of every object in one order: equal values have equal texts. */
export const canonicalJson = (value: unknown): string =>
  runAtOnce(canonicalJsonSteps(value)).join('')

/** As `canonicalJson`, in steps: at once, 20 MiB take 150 ms and more. @returns the text in pieces. */
export function* canonicalJsonSteps(value: unknown): Steps<string[]> {
  const written: WrittenText = { pieces: [], open: '' }
  yield* writeValue(written, value ?? null)
  return [...written.pieces, written.open]
}

export function* updateHashInSteps(
  hash: Hash,
  parts: Iterable<string | Uint8Array>,
): Steps<undefined> {
  for (const part of parts) {
    if (typeof part === 'string') hash.update(part)
    else
      for (let at = 0; at < part.length; at += stepBytes) {
        hash.update(part.subarray(at, at + stepBytes))
        yield
      }
    yield
  }
}

type WrittenText = { pieces: string[]; open: string }

function* writeValue(written: WrittenText, value: unknown): Steps<undefined> {
  if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) yield* writeArray(written, value)
    else yield* writeObject(written, value as Record<string, unknown>)
  } else if (typeof value === 'string' && value.length > stepLength) {
    yield* writeLongText(written, value)
  } else written.open += JSON.stringify(value) ?? 'null'
  if (written.open.length < stepLength) return
  closePiece(written)
  yield
}

function* writeArray(written: WrittenText, values: readonly unknown[]): Steps<undefined> {
  written.open += '['
  for (const [index, value] of values.entries()) {
    if (index > 0) written.open += ','
    yield* writeValue(written, value)
  }
  written.open += ']'
}

function* writeObject(written: WrittenText, fields: Record<string, unknown>): Steps<undefined> {
  written.open += '{'
  let isFirst = true
  for (const name of Object.keys(fields).sort()) {
    const value = fields[name]
    if (value === undefined) continue
    written.open += `${isFirst ? '' : ','}${JSON.stringify(name)}:`
    isFirst = false
    yield* writeValue(written, value)
  }
  written.open += '}'
}

/** No piece ends within a surrogate pair. */
function* writeLongText(written: WrittenText, text: string): Steps<undefined> {
  written.open += '"'
  for (let from = 0; from < text.length;) {
    const isPairCut = isHighSurrogate(text.charCodeAt(from + stepLength - 1))
    const to = from + stepLength - (isPairCut ? 1 : 0)
    written.open += JSON.stringify(text.slice(from, to)).slice(1, -1)
    closePiece(written)
    from = to
    yield
  }
  written.open += '"'
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

function closePiece(written: WrittenText): void {
  written.pieces.push(written.open)
  written.open = ''
}

/** From this many characters of text on a value is written as JSON in slices. */
const largeLengthMin = 256 * 1024

/** A value written as JSON in slices. The JSON around it holds its mark until `insertJsonBytes` puts the bytes there. */
export class JsonBytes {
  /** In order. They are joined once: copying 18 MB takes 10 ms. */
  readonly pieces: readonly Buffer[]
  readonly mark = `json-bytes:${randomUUID()}`

  constructor(pieces: readonly Buffer[]) {
    this.pieces = pieces
  }

  toJSON(): string {
    return this.mark
  }
}

/** Writes a value with long texts as JSON in slices: at once, 18 MB hold the event loop for 85 ms. */
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

/** Puts the bytes of values in place of their marks, for a parameter of type `json`. */
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
