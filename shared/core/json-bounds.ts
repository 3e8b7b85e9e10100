import { Refusal } from '#shared/core/errors.ts'
import type { Steps } from '#shared/core/event-loop.ts'
import { endingQuote } from '#shared/core/json-walk.ts'

export type JsonBounds = {
  /** Objects and lists: an empty one is 2 bytes to send and some 60 to hold. */
  containersMax: number
  /** Objects, lists, texts, numbers and literals. */
  valuesMax: number
  /** Fields of one object: what lists or copies them does so without a pause. */
  fieldsMax?: number
}

/** The same as in sanitize-text.ts. */
const depthMax = 64

/** For bodies that are parsed as a whole: 10,000 messages with eight parts each. */
export const parsedBodyBounds: JsonBounds = {
  containersMax: 100_000,
  valuesMax: 500_000,
  fieldsMax: 10_000,
}

/** For model calls, whose numbers and texts stay bytes; a conversation of agents has many parts. */
export const modelCallBounds: JsonBounds = { containersMax: 200_000, valuesMax: 4_000_000 }

/** By byte outside of texts: 1 opens, 2 closes, 3 separates, 4 begins a text, 5 ends the name of a field. */
const roles = new Uint8Array(256)
for (const [index, bytes] of ['{[', '}]', ',', '"', ':'].entries())
  for (const byte of Buffer.from(bytes)) roles[byte] = index + 1

/**
 * Counts the objects, lists and values of a JSON body as its bytes arrive, since 19 MiB of empty objects take a
 * gigabyte when parsed. The grammar is not checked.
 *
 * @returns a function to call with each chunk; it throws Refusal `invalid` naming the bound that is exceeded.
 */
export function createJsonCounter(bounds: JsonBounds): (bytes: Uint8Array) => void {
  const { fieldsMax = Infinity } = bounds
  let depth = 0
  let containers = 0
  let values = 1
  /** The counts of the open objects, by depth. */
  const fields = new Uint32Array(depthMax + 2)
  let isText = false
  /** How many bytes of the next chunk have been read. */
  let ahead = 0

  const check = (): void => {
    if (depth > depthMax) throw tooMuch(`nests deeper than ${depthMax} levels`)
    if (containers > bounds.containersMax)
      throw tooMuch(`holds more than ${bounds.containersMax} objects and lists`)
    if (values > bounds.valuesMax) throw tooMuch(`holds more than ${bounds.valuesMax} values`)
  }
  return bytes => {
    let at = ahead
    while (at < bytes.length) {
      if (isText) {
        at = endingQuote(bytes, at)
        isText = at >= bytes.length
        if (!isText) at++
        continue
      }
      const role = roles[bytes[at++]!]
      if (role === 0) continue
      if (role === 4) isText = true
      else if (role === 2) depth--
      else if (role === 5) {
        if (++fields[depth]! > fieldsMax)
          throw tooMuch(`has an object of more than ${fieldsMax} fields`)
      } else {
        if (role === 1) {
          fields[++depth] = 0
          containers++
        }
        values++
        check()
      }
    }
    ahead = at - bytes.length
  }
}

const stepBytes = 256 * 1024

/** As `createJsonCounter`, for a whole body, in steps of some milliseconds. */
export function* countJsonInSteps(bytes: Uint8Array, bounds: JsonBounds): Steps<undefined> {
  const count = createJsonCounter(bounds)
  for (let at = 0; at < bytes.length; at += stepBytes) {
    count(bytes.subarray(at, at + stepBytes))
    yield
  }
}

const tooMuch = (what: string): Refusal =>
  new Refusal('invalid', `The body ${what}`, 'Send less at once, in several requests')
