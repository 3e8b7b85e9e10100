import { parseTextInSteps, textStepBytes } from '#api/proxy/json/parse-text.ts'
import { validateSteps } from '#api/proxy/json/validate.ts'
import {
  firstElement,
  forEachMember,
  isArrayEnd,
  kindAt,
  nextElement,
  parseValue,
  valueEnd,
} from '#api/proxy/json/walk.ts'
import type { Steps } from '#shared/core/event-loop.ts'

/** Shorter values are parsed in one step, of about a millisecond. */
const stepBytes = 128 * 1024

/**
 * The value of JSON, as `JSON.parse` has it, in steps: at once, 8 MB of messages take 70 ms.
 *
 * @throws Refusal `invalid` for what is no JSON.
 */
export function* parseLargeJson(bytes: Buffer): Steps<unknown> {
  const start = yield* validateSteps(bytes)
  return yield* parseInSteps(bytes, start, valueEnd(bytes, start))
}

function* parseInSteps(bytes: Buffer, at: number, end: number): Steps<unknown> {
  const kind = kindAt(bytes, at)
  if (end - at > stepBytes && kind === 'array') return yield* parseArray(bytes, at)
  if (end - at > stepBytes && kind === 'object') return yield* parseObject(bytes, at)
  if (end - at > textStepBytes && kind === 'string') return yield* parseTextInSteps(bytes, at, end)
  yield
  return parseValue(bytes, at, end)
}

function* parseArray(bytes: Buffer, at: number): Steps<unknown[]> {
  const elements: unknown[] = []
  for (let element = firstElement(bytes, at); !isArrayEnd(bytes, element);) {
    const end = valueEnd(bytes, element)
    elements.push(yield* parseInSteps(bytes, element, end))
    element = nextElement(bytes, end)
  }
  return elements
}

/** Of members with the same name the last one counts. */
function* parseObject(bytes: Buffer, at: number): Steps<object> {
  const members: { name: string; at: number; end: number }[] = []
  forEachMember(bytes, at, (name, nameEnd, value) => {
    const end = valueEnd(bytes, value)
    members.push({ name: parseValue(bytes, name, nameEnd) as string, at: value, end })
    return end
  })
  const object = {}
  for (const member of members) {
    const value = yield* parseInSteps(bytes, member.at, member.end)
    // Not by assignment: a field may be named __proto__.
    const property = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(object, member.name, property)
  }
  return object
}
