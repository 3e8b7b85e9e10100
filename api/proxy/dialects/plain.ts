import { isSwitch } from '#api/proxy/dialects/switches.ts'
import { checkJson } from '#api/proxy/json/check.ts'
import { eachKept, spliced, type Cuts } from '#api/proxy/json/splice.ts'
import { kindAt, namesOf, parsed, valueEnd } from '#api/proxy/json/walk.ts'
import { Refusal } from '#shared/core/errors.ts'
import { wellFormedText } from '#shared/core/sanitize-text.ts'

/** A request that memory has nothing to do with. */
type PlainRequest = {
  /** Undefined where it is no string. */
  model: string | undefined
  /** The client's bytes, without switches and with the model renamed. */
  write(model: string): Buffer
}

const memberName = namesOf(['model'])

/**
 * Reads a request for a path without memory. Clients set their switches for all calls at once: they are
 * taken out here, too, and mean nothing. A field that only has the name of one is the provider's.
 *
 * @throws Refusal `invalid` for what is no JSON object.
 */
export function readPlain(body: Buffer): PlainRequest {
  const start = checkJson(body)
  if (kindAt(body, start) !== 'object') {
    throw new Refusal('invalid', 'The body must be a JSON object')
  }
  const cuts: Cuts = []
  let place: { at: number; end: number } | undefined
  const drops = (name: number, nameEnd: number, value: number): boolean =>
    isSwitch(body, name, nameEnd, value)
  eachKept(body, start, cuts, drops, (name, nameEnd, at) => {
    const end = valueEnd(body, at)
    if (memberName(body, name, nameEnd)) {
      place = kindAt(body, at) === 'string' ? { at, end } : undefined
    }
    return end
  })
  const model = place && wellFormedText(parsed(body, place.at, place.end) as string)
  return {
    model,
    write(name) {
      const renamed = place && name !== model ? [{ ...place, text: JSON.stringify(name) }] : []
      return spliced(body, cuts, renamed)
    },
  }
}
