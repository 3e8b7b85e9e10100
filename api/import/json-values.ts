import { Refusal } from '#shared/core/errors.ts'

/** Characters of the largest single value: one conversation, or a file that is one object. */
const valueCharactersMax = 256 * 1024 * 1024

/**
 * Reads the values of JSON as it arrives: the elements of top-level arrays one by one, and every other top-level
 * value whole, so JSON lines are read too. Memory holds one value at a time.
 *
 * stream-json 3.8.0 was measured in its place and not taken: it refuses the NaN that Python writes, drops what comes
 * behind an array, rounds ids of 64 bits, and needs twice the processor time (3.8 s for 150 MB of conversations).
 *
 * @param name of the file, for errors
 * @throws Refusal `invalid` for what is no JSON and for a file that ends early, `too-large` for a value over 256 MiB
 */
export async function* readJsonValues(
  source: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator {
  for await (const value of splitValues(decode(source), name)) yield parseValue(value, name)
}

/** Decodes UTF-8, or UTF-16 where a file begins with its mark, as those of PowerShell do. */
async function* decode(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined
  for await (const chunk of source) {
    const encodings: Record<string, string> = { '255,254': 'utf-16le', '254,255': 'utf-16be' }
    decoder ??= new TextDecoder(encodings[chunk.subarray(0, 2).join()])
    yield decoder.decode(chunk, { stream: true })
  }
}

type Value = { text: string; at: number }

function parseValue({ text, at }: Value, name: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    const start = JSON.stringify(text.slice(0, 30))
    const place = `character ${at.toLocaleString('en')}`
    throw new Refusal('invalid', `${name} is not JSON at ${place}: ${start}`)
  }
}

/**
 * Parses JSON. Whole numbers of 16 and more digits beyond 2^53, such as ids of 64 bits, become texts with all of
 * their digits; the NaN and Infinity that Python writes become null.
 *
 * @throws SyntaxError
 */
function parseExactJson(text: string): unknown {
  try {
    return /\d{16}/.test(text) ? JSON.parse(text, exactNumber) : JSON.parse(text)
  } catch (error) {
    const plain = text.replaceAll(/"[^"\\]*(?:\\[^][^"\\]*)*"?|-?\b(?:NaN|Infinity)\b/g, token =>
      token.startsWith('"') ? token : 'null',
    )
    if (plain === text) throw error
    return parseExactJson(plain)
  }
}

const exactNumber = (_name: string, value: unknown, read?: { source: string }): unknown =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? read!.source : value

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = Array.from(
  '"\\,[]{}',
  character => character.charCodeAt(0),
)

/** Splits a text into JSON values by their brackets and quotes; chunks may end anywhere. */
async function* splitValues(chunks: AsyncIterable<string>, name: string): AsyncGenerator<Value> {
  // What earlier chunks have of the value that is being read, and how many characters are before it.
  let [read, before] = ['', 0]
  let [depth, inString, escaped, inArray] = [0, false, false, false]
  for await (const chunk of chunks) {
    let start = 0
    for (let at = 0; at < chunk.length; at++) {
      const code = chunk.charCodeAt(at)
      if (inString) {
        if (escaped) escaped = false
        else if (code === backslash) escaped = true
        else if (code === quote) inString = false
        continue
      }
      if (code === quote) inString = true
      const endsArray = depth === 0 && inArray && code === closeBracket
      const beginsArray =
        depth === 0 && !inArray && code === openBracket && read === '' && start === at
      const isBetween =
        endsArray || beginsArray || (depth === 0 && (code <= 0x20 || code === comma))
      if (endsArray || beginsArray) inArray = beginsArray
      else if (code === openBrace || code === openBracket) depth++
      else if ((code === closeBrace || code === closeBracket) && depth > 0) depth--
      else if (!isBetween) continue
      if (depth > 0) continue
      const text = read + chunk.slice(start, isBetween ? at : at + 1)
      if (text !== '') yield { text, at: before }
      before += text.length + (isBetween ? 1 : 0)
      read = ''
      start = at + 1
    }
    read += chunk.slice(start)
    if (read.length > valueCharactersMax) throw tooLarge(name)
  }
  if (inArray || depth > 0 || inString) throw cutOff(name)
  if (read !== '') yield { text: read, at: before }
}

const tooLarge = (name: string): Refusal =>
  new Refusal(
    'too-large',
    `${name} has a single value of more than 256 MiB`,
    'Split the file: one JSON object a line, or an array of smaller objects',
  )

const cutOff = (name: string): Refusal =>
  new Refusal(
    'invalid',
    `${name} ends in the middle of a value`,
    'It is incomplete: download the export again',
  )
