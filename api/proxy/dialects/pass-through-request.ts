import { isSwitchMember } from '#api/proxy/dialects/body-switches.ts'
import { validateJson } from '#api/proxy/json/validate.ts'
import { forEachRetainedMember, applySplices, type Removals } from '#api/proxy/json/splice.ts'
import { kindAt, createNameMatcher, parseValue, valueEnd } from '#api/proxy/json/walk.ts'
import { notJsonObject } from '#shared/core/refusals.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'

/** A request for an endpoint without memory. */
type PassthroughRequest = {
  /** Undefined when the body's `model` is no string. */
  model: string | undefined
  /** The client's bytes, without switches and with the model renamed. */
  serialize(model: string): Buffer
}

const matchModelField = createNameMatcher(['model'])

/**
 * Reads a request for an endpoint without memory. Clients set their switches for all calls: here they are
 * removed and have no effect. A member with the name of a switch but another type is the provider's.
 *
 * @throws Refusal `invalid` when the body is no JSON object.
 */
export function parsePassthroughRequest(body: Buffer): PassthroughRequest {
  const start = validateJson(body)
  if (kindAt(body, start) !== 'object') {
    throw notJsonObject()
  }
  const removals: Removals = []
  let modelSpan: { at: number; end: number } | undefined
  const shouldRemove = (name: number, nameEnd: number, value: number): boolean =>
    isSwitchMember(body, name, nameEnd, value)
  forEachRetainedMember(body, start, removals, shouldRemove, (name, nameEnd, at) => {
    const end = valueEnd(body, at)
    if (matchModelField(body, name, nameEnd)) {
      modelSpan = kindAt(body, at) === 'string' ? { at, end } : undefined
    }
    return end
  })
  const model = modelSpan && sanitizeText(parseValue(body, modelSpan.at, modelSpan.end) as string)
  return {
    model,
    serialize(name) {
      const renamed =
        modelSpan && name !== model ? [{ ...modelSpan, text: JSON.stringify(name) }] : []
      return applySplices(body, removals, renamed)
    },
  }
}
